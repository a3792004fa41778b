"""Requests and responses, one file per API, named after it in snake case."""
