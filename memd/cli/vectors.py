"""The vectors of facts: how many there are, and making those that are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from memd.cli.bars import bar
from memd.cli.common import Json, completes, echo, echo_json, settings, warn
from memd.context import Bucket
from memd.errors import EmbedderFailed, MemdError
from memd.memory.store.json_store import open_store
from memd.recall.embedded import Embedded, buckets_of

vectors = typer.Typer(
    help="Count the vectors of search by meaning, or make those that are missing.", no_args_is_help=True
)

OneUser = Annotated[
    str | None,
    typer.Argument(metavar="[USER]", help="Only this user's memories.", autocompletion=completes("user")),
]

MISSING = 1
"""Exit code of `memd vectors status` when vectors are missing."""

TRIES = 3


@vectors.command()
def status(user: OneUser = None, as_json: Json = False) -> None:
    """Count facts and their vectors.

    It says who compares them, too: pgvector, or memd itself. Exit code 1: some are missing, or another embedder has
    made them.

    Example: memd vectors status ana
    """
    embedded, buckets = _opened(user)
    memories = facts = missing = damaged = 0
    with bar("memories", len(buckets)) as advance:
        for bucket in buckets:
            advance()
            try:
                held = embedded.look(bucket)
            except MemdError as error:
                damaged += _skipped(error)
                continue
            memories, facts, missing = memories + bool(held.facts), facts + held.facts, missing + held.missing
    counts = {"memories": memories, "facts": facts, "missing": missing, "damaged": damaged}
    _print({**counts, "compared_by": embedded.compared_by}, as_json=as_json)
    if missing:
        raise typer.Exit(MISSING)


@vectors.command()
def rebuild(
    user: OneUser = None,
    anew: Annotated[bool, typer.Option("--all", help="Also make anew those that are there.")] = False,
    as_json: Json = False,
) -> None:
    """Make the missing vectors.

    Those that another embedder has made are made anew. It may be stopped and run again. The texts of facts are sent to
    vectors.url. Exit code 69: the embedder fails; what was made until then stays. Exit code 1: it refuses some texts.

    Example: memd vectors rebuild
    """
    embedded, buckets = _opened(user)
    counts = dict.fromkeys(("memories", "written", "refused", "damaged"), 0)
    failure: EmbedderFailed | None = None
    with bar("memories", len(buckets)) as advance:
        for bucket in buckets:
            advance()
            try:
                made = embedded.make(bucket, tries=TRIES, anew=anew)
            except EmbedderFailed as error:
                failure = error
                break
            except MemdError as error:
                counts["damaged"] += _skipped(error)
                continue
            counts["memories"] += bool(made.written)
            counts["written"] += made.written
            counts["refused"] += made.refused
    _print(counts, as_json=as_json)
    if failure is not None:
        raise failure
    if counts["refused"]:
        raise typer.Exit(MISSING)


def _opened(user: str | None) -> tuple[Embedded, list[Bucket]]:
    """What makes vectors, and the memories. Raises ConfigError without `vectors.url`, StoreUnavailable."""
    chosen = settings()
    store = open_store(chosen)
    embedded = Embedded(chosen, store)
    return embedded, list(buckets_of(store, user, shared=chosen.store.shared))


def _skipped(error: MemdError) -> int:
    """Say that a memory was left out."""
    warn(f"left out: {error}")
    return 1


def _print(counts: Mapping[str, int | str], *, as_json: bool) -> None:
    chosen = settings().vectors
    named: dict[str, Any] = {"model": chosen.model, "dimensions": chosen.dimensions, **counts}
    if as_json:
        echo_json(named)
        return
    echo("  ".join(f"{name} {value}" for name, value in _shown(named)))


def _shown(named: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is worth a word."""
    return ((name, value) for name, value in named.items() if value or name in ("facts", "missing", "written"))
