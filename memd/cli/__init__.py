"""The command line. A command parses, calls the library and prints; it decides nothing.

A command's module is imported when the command is called, so `memd push` from a shell starts in a fraction of a second.
"""

from __future__ import annotations

import sys

from memd.cli import interrupt

interrupt.install()  # before anything else is imported: from now on no interrupt is lost

from memd.cli.app import app  # noqa: E402  (see above)
from memd.cli.common import nothing  # noqa: E402
from memd.errors import FactUnknown, MemdError  # noqa: E402


def main() -> None:
    """The entry point: run a command; an error becomes one sentence and an exit code."""
    try:
        app()
    except MemdError as error:
        print(f"memd: {error}", file=sys.stderr)  # noqa: T201  (this is the terminal)
        if isinstance(error, FactUnknown):
            nothing("no such fact")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
