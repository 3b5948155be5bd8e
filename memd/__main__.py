"""`python -m memd`: the same as `memd`, so nothing is imported from the current folder either."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # `python -m` put the current folder there; nothing but this package has been imported yet

from memd.cli import main

main()
