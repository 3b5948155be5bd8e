"""The audit of one memory: what the rules of `memd audit` find in it."""

from __future__ import annotations

from dataclasses import asdict

from starlette.responses import Response

from memd.http.admin_fields import AuditQuery
from memd.http.operation import HttpRequest, json_response
from memd.http.paging import page
from memd.ops.audit import Report, inspect

SAID = ("said", "refused")
"""Places of a memory whose texts are only for tokens with the scope `said`, as in an export."""


async def audit(request: HttpRequest) -> Response:
    """A page of the findings, and how many each rule has. It changes nothing."""
    query: AuditQuery = request.query

    def work() -> Report:
        return inspect(request.service.settings, [query.user_id], query.agent_name)

    report = await request.service.run(request.service.long, work)
    may = "said" in request.token.scopes
    seen = [row for row in report.findings if may or not row.finding.place.startswith(SAID)]
    chosen = [row.finding for row in seen if query.rule in (None, row.finding.rule)]
    findings, following = page(chosen, query.after, query.limit)
    return json_response({
        "facts": report.facts,
        "counts": Report(report.memories, report.facts, tuple(seen)).counts,
        "findings": [asdict(finding) for finding in findings],
        "next": following,
    })  # fmt: skip
