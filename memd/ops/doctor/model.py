"""The model's endpoint: whether it responds and accepts the key. It costs no tokens and never shows the key."""

from __future__ import annotations

import asyncio

from memd.errors import MemdError
from memd.extraction import chosen, probe
from memd.ops.doctor.checkup import Checkup, Verdict, bad, ok, warn
from memd.printable import counted, noun

DEADLINE_S = 10.0
FORMLESS = "bad_reply"
"""The code of a reply that is not a valid update."""

IN_A_ROW, MANY = "formless_in_a_row", 10
"""The counter of invalid replies since the last stored context, and the count from which the endpoint is at fault."""


def endpoint(checkup: Checkup) -> Verdict:
    """The endpoint describes the model."""
    settings = checkup.settings.extraction
    if chosen(settings) == "rules":
        return ok(
            "none: the offline extractor reads plain statements (no key is set, or extraction.extractor is rules)"
        )
    problem = asyncio.run(probe(settings, min(DEADLINE_S, settings.deadline_s)))
    if problem is None:
        return _form(checkup) or ok(f"{settings.model}: the endpoint responds and accepts the key")
    if problem.code == "model_not_found":
        return warn(f"the endpoint responds, but does not describe the model {settings.model}; not every endpoint does")
    return bad(str(problem)) if problem.code != "rate_limited" else warn(str(problem))


def _form(checkup: Checkup) -> Verdict | None:
    """A verdict on recent invalid replies, from the inbox's counters, so it spends no tokens; None without many."""
    try:
        stats = checkup.figures.stats
    except MemdError:  # the server's own check reports it
        return None
    if (in_a_row := stats.get(IN_A_ROW, 0)) >= MANY:
        return bad(
            f"the last {in_a_row} replies were not in the form asked for ({FORMLESS}): choose a model that keeps to a "
            "schema, then memd dead retry"
        )
    formless, stored = stats.get(f"dead:{FORMLESS}", 0), stats.get("stored", 0)
    if not formless or stored > formless:
        return None
    died = f"{counted(formless, 'push', 'pushes')} died as the replies were not in the form asked for ({FORMLESS})"
    sentence = f"{died}, {stored} {noun(stored, 'was', 'were')} stored"
    advice = "choose a model that keeps to a schema"
    return warn(f"{sentence}: {advice}") if stored else bad(f"{sentence}: {advice}, then memd dead retry")
