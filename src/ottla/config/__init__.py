"""Settings: Kafka's own keys as tables, and everything that is read from them."""
