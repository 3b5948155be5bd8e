"""The doctor: checks everything that memd depends on, one function a check, and says what to do.

A check returns ok, warn or bad with one sentence. A check that cannot find out returns a warning; the others still run.
"""

from __future__ import annotations

from collections.abc import Callable

from memd.config import Settings
from memd.errors import InboxUnavailable, MemdError, NotAllowed
from memd.ops.doctor import folder, inbox, model, server
from memd.ops.doctor.checkup import Checkup, Diagnosis, Verdict, bad, warn

__all__ = ["CHECKS", "Diagnosis", "examine"]

CHECKS: dict[str, Callable[[Checkup], Verdict]] = {
    "server": server.reachable,
    "persistence": server.persistence,
    "replicas": server.replicas,
    "eviction": server.eviction,
    "memory": server.memory,
    "clock": server.clock,
    "account": server.account,
    "functions": inbox.functions,
    "keys": inbox.types,
    "raw lists": inbox.raw,
    "waiting": inbox.waiting,
    "dead": inbox.dead,
    "workers": inbox.workers,
    "data folder": folder.permissions,
    "disk": folder.space,
    "open files": folder.files,
    "leftovers": folder.leftovers,
    "model": model.endpoint,
    "breaker": inbox.breaker,
}
"""The checks by name, in the order of the report."""


def examine(settings: Settings, *, ask: bool = False) -> list[Diagnosis]:
    """Run all checks; `ask`: also make one real call to the model. A failing check becomes a verdict, no exception."""
    checks = {**CHECKS, "reply": model.reply} if ask else CHECKS
    with Checkup(settings) as checkup:
        return [Diagnosis(name, *_run(name, check, checkup)) for name, check in checks.items()]


def _run(name: str, check: Callable[[Checkup], Verdict], checkup: Checkup) -> Verdict:
    try:
        return check(checkup)
    except NotAllowed as error:
        return warn(f"not checked: {error}")
    except InboxUnavailable as error:
        return bad(str(error)) if name == "server" else warn("not checked, as the server does not respond")
    except MemdError as error:
        return warn(f"not checked: {error}")
    except OSError as error:
        return warn(f"not checked: the system refused ({error.strerror})")
    except Exception as error:  # noqa: BLE001  (one broken check must not hide the results of the others)
        return warn(f"not checked: the check itself failed ({type(error).__name__})")
