"""The strategies of compaction: each is a module with one pure function `plan(turns, settings)`, found by its name.

The turns have to be paired, and so are those that a plan keeps.
"""
