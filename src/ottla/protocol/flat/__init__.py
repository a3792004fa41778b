"""Codecs of the hot APIs, written out by `ottla.protocol.flatten` from the same declarations as everything else."""
