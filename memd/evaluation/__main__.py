"""`python -m memd.evaluation`: the shipped evaluation."""

import sys

from memd.evaluation.shipped import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
