"""Backups: made while memd runs, and restored."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from memd.cli.bars import Bars
from memd.cli.common import Json, Yes, confirm, daemon_settings, echo, echo_json, warn
from memd.inbox.connection import connect
from memd.ops import backing_up, restoring, server
from memd.ops.backup_folder import Manifest
from memd.printable import counted

NOT_WHOLE = 1
"""Exit code when something could not be read, or is not as it should be."""

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the backup.")]


def backup(folder: Folder, as_json: Json = False) -> None:
    """Back up inbox, memories, projects, sessions, tasks and tombstones.

    memd may run meanwhile. The folder is new, or that of an earlier backup of the same store, in which only what has
    changed is written; until that is done it is no backup, so keep two. Exit code 1: a memory could not be read, so it
    is not in the backup. Settings, tokens and passwords are in none.

    Example: memd backup /var/backups/memd/monday
    """
    chosen = daemon_settings()
    with server.running(chosen), Bars() as bars:
        manifest, done = backing_up.back_up(chosen, connect(chosen), folder, bars.step)
    if as_json:
        echo_json(asdict(manifest))
    else:
        _print(manifest)
        for piece, code in done.unreadable:
            warn(f"a {piece.kind} cannot be read ({code}); `memd doctor` names it")
    if done.unreadable:
        raise typer.Exit(NOT_WHOLE)


def restore(
    folder: Folder,
    replace: Annotated[
        bool, typer.Option("--replace", help="Into a store that holds memories; those not in the backup go.")
    ] = False,
    take_inbox: Annotated[
        bool, typer.Option("--take-inbox", help="Although the inbox belongs to another store, which is lost.")
    ] = False,
    only_inbox: Annotated[
        bool, typer.Option("--only-inbox", help="The store has lost nothing; bring back the inbox.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Restore a backup into the store and the inbox of the settings.

    Whoever was forgotten since the backup stays forgotten, as far as the store, the inbox or the backup itself know of
    it. What the inbox holds stays, and what the backup's held comes back beside it; what was stored already is not
    stored twice. Workers may run: the store is sealed until all is there. A restore that was killed goes on with the
    same command.

    Example: memd restore /var/backups/memd/monday
    """
    if only_inbox and (replace or take_inbox):
        raise typer.BadParameter("--only-inbox goes with neither --replace nor --take-inbox")
    chosen = daemon_settings()
    if replace and not yes:
        confirm("Remove every memory that is newer than the backup, or not in it?")
    with server.running(chosen), Bars() as bars:
        client = connect(chosen)
        done = (
            restoring.restore_inbox(chosen, client, folder, bars.step)
            if only_inbox
            else restoring.restore(chosen, client, folder, bars.step, replaces=replace, takes_inbox=take_inbox)
        )
    if as_json:
        echo_json(_as_json(done))
    else:
        _print_restored(done)
    if not done.is_whole:
        raise typer.Exit(NOT_WHOLE)


def _print(manifest: Manifest) -> None:
    for number, one, many in (
        (manifest.contexts, "pending context", "pending contexts"),
        (manifest.letters, "dead letter", "dead letters"),
        (manifest.memories, "memory", "memories"),
        (manifest.projects, "project", "projects"),
        (manifest.sessions, "session", "sessions"),
        (manifest.task_files, "file of tasks", "files of tasks"),
        (manifest.tombstones, "tombstone", "tombstones"),
    ):
        echo(f"  {counted(number, one, many)}")


def _print_restored(done: restoring.Restored) -> None:
    if done.moved is not None:
        seen = done.compared.seen if done.compared else done.moved.seen
        echo(f"  {counted(seen['memory'], 'memory', 'memories')}, {counted(seen['project'], 'project', 'projects')}, "
             f"{counted(seen['session'], 'session', 'sessions')}")  # fmt: skip
    dead = counted(done.letters, "dead letter", "dead letters")
    echo(f"  {counted(done.contexts, 'context', 'contexts')} pending again, {dead}")
    if done.forgotten:
        echo(f"  {counted(done.forgotten, 'user', 'users')} forgotten since the backup, and not restored")
    if not done.is_whole and done.compared:
        warn(f"{len(done.compared.unreadable)} cannot be read in the backup")
        if done.compared.differing:
            warn(f"{len(done.compared.differing)} differ, so the store stays sealed; run the same command again")


def _as_json(done: restoring.Restored) -> dict[str, Any]:
    found: dict[str, Any] = {
        "backup": asdict(done.manifest),
        "contexts": done.contexts,
        "messages": done.messages,
        "letters": done.letters,
        "forgotten": done.forgotten,
        "task_files": done.task_files,
        "whole": done.is_whole,
    }
    if done.compared is not None:
        found["compared"] = dict(done.compared.seen)
        found["differing"] = len(done.compared.differing)
        found["unreadable"] = len(done.compared.unreadable)
    return found
