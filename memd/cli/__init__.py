"""The command line. A command parses, calls the library and prints; it decides nothing.

A command's module is imported when the command is called, so `memd push` from a shell starts in a fraction of a second.
"""

from __future__ import annotations

import errno
import sys
from contextlib import suppress

from memd.cli import interrupt

interrupt.install()  # before anything else is imported: from now on no interrupt is lost

from memd.cli.app import app  # noqa: E402  (see above)
from memd.cli.common import nothing, settings, warn  # noqa: E402
from memd.errors import FactUnknown, MemdError, StoreSealed, StoreUnavailable  # noqa: E402

OUTPUT_FAILED = 74
"""Exit code when standard output cannot be written, as EX_IOERR of sysexits.h."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def main() -> None:
    """The entry point: run a command; an error becomes one sentence and an exit code."""
    try:
        try:
            app()
        finally:
            _flush()
    except MemdError as error:
        print(f"memd: {error}", file=sys.stderr)  # noqa: T201  (this is the terminal)
        if isinstance(error, FactUnknown):
            nothing("no such fact")
        elif isinstance(error, StoreUnavailable) and not isinstance(error, StoreSealed):
            warn(f"the data folder is {settings().data_dir.absolute()}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        _discard()
        sys.exit(141)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _discard()
        print(f"memd: standard output cannot be written ({error.strerror})", file=sys.stderr)  # noqa: T201  (as above)
        sys.exit(OUTPUT_FAILED)


def _flush() -> None:
    """Write the output while its failure can still be reported. Raises OSError."""
    if sys.stdout and not sys.stdout.closed:
        sys.stdout.flush()


def _discard() -> None:
    """Discard the output that could not be written; Python would try again at its end and change the exit code."""
    with suppress(OSError):
        sys.stdout.close()
