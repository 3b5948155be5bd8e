"""Seeded bugs: they prove that the checks find something.

`python -m chaos.mutants` switches on one at a time and expects the chaos run, or the named test, to fail. A bug is an
edit of memd's source at load time, in processes that have `hook` on PYTHONPATH and CHAOS_BUG set; the installed
package contains nothing of it. An edit whose text is not in the source ends the process: then the bug must be
rewritten for the present code.
"""
