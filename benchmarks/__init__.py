"""The source of memd's performance figures: `make bench`, `make bench-full`. See benchmarks/README.md."""
