"""Seeded bugs: a check that catches none of them checks nothing.

`python -m chaos.mutants` switches on one at a time and expects the chaos run, or the named test, to fail. A bug is an
edit of memd's source at load time, in processes that have `hook` on PYTHONPATH and CHAOS_BUG set; nothing of that is in
the installed package. An edit that does not find the text it changes ends the process: then the bug needs to be
written anew for the code as it is.
"""
