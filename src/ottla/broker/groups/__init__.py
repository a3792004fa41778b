"""Groups of consumers and others, and the offsets that they committed: state machines over `__consumer_offsets`."""
