"""Where memd's performance figures come from: `make bench`, `make bench-full`. See benchmarks/README.md."""
