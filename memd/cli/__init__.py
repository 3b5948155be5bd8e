"""The command line. Each command parses, calls and prints; what it decides is decided in the library.

Nothing heavy is imported before a command needs it: `memd push` from a shell should cost a blink.
"""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point: run a command, turn errors into one sentence and an exit code."""
    from memd.cli.app import app  # noqa: PLC0415  (typer is loaded once something is to be parsed)
    from memd.errors import MemdError  # noqa: PLC0415

    try:
        app()
    except MemdError as error:
        print(f"memd: {error}", file=sys.stderr)  # noqa: T201  (this is the terminal)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
