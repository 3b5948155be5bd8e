"""The options that filter facts, the same for every command that lists or finds them."""

from __future__ import annotations

from typing import Annotated

import typer

from memd.cli.common import completes
from memd.memory.listing import SCOPE_NAMES, STATUSES

Categories = Annotated[
    list[str] | None,
    typer.Option("--category", help="Only facts of this category; repeatable.", autocompletion=completes("category")),
]
Scopes = Annotated[
    list[str] | None, typer.Option("--scope", help=f"Only facts of this scope ({', '.join(SCOPE_NAMES)}); repeatable.")
]
ByStatus = Annotated[str, typer.Option("--status", help=f"Only facts of this status: {', '.join(STATUSES)}.")]
Member = Annotated[
    str | None,
    typer.Option("--member", help="Only facts that this user brought in.", autocompletion=completes("user")),
]
Since = Annotated[str | None, typer.Option("--since", help="Only facts of this time or later (ISO 8601).")]
Until = Annotated[str | None, typer.Option("--until", help="Only facts before this time (ISO 8601).")]
PeriodBy = Annotated[
    str,
    typer.Option("--by", help="The time that --since and --until mean: learned (added or last changed), or said."),
]
