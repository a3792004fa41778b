"""What Kafka stores in its own topics and files: records of the metadata, group, transaction and share logs."""
