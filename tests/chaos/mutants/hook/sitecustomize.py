"""Run by every Python process that finds this folder on its path: switches on the bug that CHAOS_BUG names.

Python ignores exceptions here, so that a bug that cannot be seeded has to end the process by force.
"""

from __future__ import annotations

import os
import sys
import traceback

UNSEEDED = 70
"""Exit code of a process whose bug does not fit the code."""

if os.environ.get("CHAOS_BUG"):
    try:
        from chaos.mutants.seeding import switch_on

        switch_on(os.environ["CHAOS_BUG"])
    except BaseException:  # noqa: BLE001  (whatever it was: nothing may run as if the bug were there)
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(UNSEEDED)
