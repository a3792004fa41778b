"""The log on disk, in Kafka's own files. Blocking code on a `FileSystem` that it is given; knows no event loop."""
