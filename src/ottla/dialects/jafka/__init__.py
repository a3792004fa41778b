"""The dialect of Jafka, and of Kafka 0.7 as far as Jafka speaks it: byte offsets, no acknowledgements, few errors."""
