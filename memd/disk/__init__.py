"""The data folder's ground rules: durable files, locks between processes, ids as path parts. Knows no document."""
