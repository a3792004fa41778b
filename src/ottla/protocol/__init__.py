"""The envelopes: messages, headers and framing, from bytes to values and back. Sans-IO."""
