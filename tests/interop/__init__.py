"""Other people's clients and tools against a broker process. Runs with `make interop`, not with the unit tests."""
