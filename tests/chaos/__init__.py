"""The chaos run: real producers, server, scheduler and workers, killed one after another; nothing must be lost.

`python -m chaos` (with `tests` on PYTHONPATH) pushes contexts through both doors while `kill -9` hits random processes,
lets the inbox drain, and compares the documents with the acknowledged contexts, fact by fact, in order. Read the
modules in this order: `plan → load → producer → fleet → kills → watcher → run → compare → leftovers → report`.
"""
