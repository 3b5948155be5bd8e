"""`python -P -m memd`: the same as `memd`.

Without `-P`, Python puts the current folder first before it looks for this package, so a folder `memd` there runs in
place of this one. From this file on, nothing is imported from the current folder.
"""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # `python -m` put the current folder there; nothing but this package has been imported yet

from memd.cli import main

main()
