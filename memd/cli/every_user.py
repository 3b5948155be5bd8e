"""The memories of all users: exported and imported as JSON Lines, one user a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import typer

from memd.cli.bars import bar
from memd.cli.common import echo, nothing, settings, warn
from memd.cli.output import private
from memd.client import Memd
from memd.disk.files import MAX_BYTES
from memd.errors import DocumentDamaged, Rejected
from memd.identifiers import check_identifier
from memd.memory.hand.formats import parse_json, read
from memd.memory.hand.transfer import Imported, Transfer
from memd.printable import counted, printable


def export_all(output: Path | None) -> None:
    """Write a line for each user that has a memory; in memory is one user at a time."""
    transfer = Transfer(settings())
    users = sorted(transfer.editing.users())
    if not users:
        nothing("no memories")
        return
    damaged = written = 0
    with private(output) if output else nullcontext(sys.stdout.buffer) as file, bar("exporting", len(users)) as advance:
        for user_id in users:
            try:
                written += _write(file, transfer.export(user_id))
            except DocumentDamaged as error:
                damaged += 1
                warn(f"{printable(user_id)} is left out: {error}")
            advance()
    warn(f"{counted(written, 'user')} written" + (f", {damaged:,} left out" if damaged else ""))
    if damaged:
        raise typer.Exit(DocumentDamaged.exit_code)


def _write(file: BinaryIO, found: dict[str, Any]) -> bool:
    """Write the line of a user; False when they were forgotten since they were listed."""
    if not (found["memories"] or found["tasks"] or found["sessions"]):
        return False
    file.write(orjson.dumps(found, option=orjson.OPT_APPEND_NEWLINE))
    return True


def import_all(file: str, *, best: bool, dry_run: bool, as_json: bool) -> None:
    """Import each line into the memory of its own user, after all lines were read and checked once.

    A user whose memory refuses the import is reported, and the others are still imported.
    """
    if file == "-":
        raise typer.BadParameter("--all needs a file: it is read twice, once to check it", param_hint="FILE")
    total = sum(1 for _ in _users_in(Path(file)))
    found: list[Imported] = []
    with Memd(settings()) as memd, bar("importing", total) as advance:
        for number, user_id, value in _users_in(Path(file)):
            try:
                found.append(memd.import_memory(user_id, value, format="memd", best=best, dry_run=dry_run))
            except (Rejected, DocumentDamaged) as error:  # nothing of this user was stored
                warn(f"line {number}: {error}")
            else:
                if as_json:
                    row = {"line": number, "user_id": user_id, "dry_run": dry_run, **asdict(found[-1])}
                    sys.stdout.buffer.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
            advance()
    if not as_json:
        echo(_summary(found, dry_run))
    if len(found) < total:
        raise typer.Exit(Rejected.exit_code)


def _users_in(file: Path) -> Iterator[tuple[int, str, Any]]:
    """Number, user and export of each line. Raises Rejected with the line, typer.BadParameter."""
    try:
        with file.open("rb") as opened:
            for number, line in enumerate(iter(lambda: opened.readline(MAX_BYTES + 2), b""), 1):
                if line.strip():
                    yield number, *_user_of(number, line.rstrip(b"\r\n"))
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read ({error.strerror})", param_hint="FILE") from None


def _user_of(number: int, line: bytes) -> tuple[str, Any]:
    try:
        value = parse_json(line)
        if not isinstance(value, dict) or value.get("format") != "memd":
            raise Rejected("E_IMPORT_FORMAT", "each line must be an export of memd; import other formats user by user")
        user_id = check_identifier("userId", value.get("userId"))
        read(value, "memd", user_id)
    except Rejected as error:
        code, _, sentence = str(error).partition(": ")
        raise Rejected(code, f"line {number}: {sentence}; nothing was imported", error.field, error.limit) from None
    return user_id, value


def _summary(found: list[Imported], dry_run: bool) -> str:
    memories = [memory for one in found for memory in one.memories]
    facts = counted(sum(len(memory.added) for memory in memories), "fact")
    known = sum(memory.known for memory in memories)
    refused = sum(sum(memory.refused.values()) for memory in memories)
    verb = "would be added" if dry_run else "added"
    return f"{counted(len(found), 'user')}: {facts} {verb}, {known:,} known already, {refused:,} refused"
