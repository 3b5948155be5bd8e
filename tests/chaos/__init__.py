"""The chaos run: real producers, server, scheduler and workers, one killed after another; nothing may be lost.

`python -m chaos` (with `tests` on PYTHONPATH) pushes contexts by both doors while `kill -9` takes processes at random,
lets the inbox drain, and compares the documents with what was acknowledged: fact by fact, in order. Read in this order:
`plan → load → producer → fleet → kills → watcher → run → compare → leftovers → report`.
"""
