"""The said layer: the messages that a bucket has taken in, redacted and bounded. Pure: a store reads and writes."""
