"""Damaged frames, batches and files, made from good ones: no crash, no hang, no memory beyond what came.

With the unit tests each target runs for a moment, to keep the fuzzer itself in order; `make fuzz` gives it a minute
and `make soak` as long as it is given (`FUZZ_SECONDS` for each target).
"""
