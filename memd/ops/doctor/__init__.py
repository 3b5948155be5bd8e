"""The doctor: looks at everything that memd stands on, one check a function, and says what to do.

A check answers ok, warn or bad with one sentence. What it cannot find out is a warning, never the end of the others.
"""

from __future__ import annotations

from collections.abc import Callable

from memd.config import Settings
from memd.errors import InboxUnavailable, MemdError, NotAllowed
from memd.ops.doctor import folder, inbox, model, server
from memd.ops.doctor.patient import Finding, Patient, Verdict, bad, warn

__all__ = ["CHECKS", "Finding", "examine"]

CHECKS: dict[str, Callable[[Patient], Verdict]] = {
    "server": server.reachable,
    "persistence": server.persistence,
    "eviction": server.eviction,
    "memory": server.memory,
    "clock": server.clock,
    "account": server.account,
    "functions": inbox.functions,
    "raw lists": inbox.raw,
    "waiting": inbox.waiting,
    "dead": inbox.dead,
    "workers": inbox.workers,
    "data folder": folder.permissions,
    "disk": folder.space,
    "leftovers": folder.leftovers,
    "model": model.endpoint,
    "breaker": inbox.breaker,
}
"""In the order in which they are printed."""


def examine(settings: Settings) -> list[Finding]:
    """Make all checks. Never raises for what it finds."""
    with Patient(settings) as patient:
        return [Finding(name, *_made(name, check, patient)) for name, check in CHECKS.items()]


def _made(name: str, check: Callable[[Patient], Verdict], patient: Patient) -> Verdict:
    try:
        return check(patient)
    except NotAllowed as error:
        return warn(f"not checked: {error}")
    except InboxUnavailable as error:
        return bad(str(error)) if name == "server" else warn("not checked, as the server does not answer")
    except MemdError as error:
        return warn(f"not checked: {error}")
    except OSError as error:
        return warn(f"not checked: the system refused ({error.strerror})")
    except Exception as error:  # noqa: BLE001  (one check that stumbles must not hide what the others find)
        return warn(f"not checked: the check itself failed ({type(error).__name__})")
