"""`python -m memd`."""

from memd.cli import main

main()
