"""The model's endpoint: whether it answers and accepts the key. It costs no tokens and never shows the key."""

from __future__ import annotations

import asyncio

from memd.extraction import chosen
from memd.ops.doctor.checkup import Checkup, Verdict, bad, ok, warn

DEADLINE_S = 10.0


def endpoint(checkup: Checkup) -> Verdict:
    """The endpoint describes the model."""
    settings = checkup.settings.extraction
    if chosen(settings) == "rules":
        return ok(
            "none: the offline extractor reads plain statements (no key is set, or extraction.extractor is rules)"
        )
    from memd.extraction.anthropic import probe  # noqa: PLC0415  (imports the SDK: a second)

    problem = asyncio.run(probe(settings, min(DEADLINE_S, settings.deadline_s)))
    if problem is None:
        return ok(f"{settings.model}: the endpoint answers and accepts the key")
    if problem.code == "model_not_found":
        return warn(f"the endpoint answers, but does not describe the model {settings.model}; not every endpoint does")
    return bad(str(problem)) if problem.code != "rate_limited" else warn(str(problem))
