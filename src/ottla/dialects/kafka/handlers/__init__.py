"""One file per API: from a decoded request to one call on `Broker`, and from its answer to a response."""
