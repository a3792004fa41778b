"""Records: bytes to batches and back, without a socket, a file or a clock.

Every room handles records as bytes with a readable front; this one knows what the bytes mean. `batch` views a v2 batch,
`validation` decides whether a produced one may enter a log, `builder` makes one, `legacy` reads what was written before
Kafka 0.11. Nothing here asks the operating system for anything.
"""
