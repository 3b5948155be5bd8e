"""Folders of users, agents and projects, and whose they are: said by their names, or by a document inside."""

from __future__ import annotations

import os
from pathlib import Path

import orjson

from memd.context import DEFAULT_AGENT
from memd.disk import files, path_parts
from memd.errors import DocumentDamaged
from memd.memory.store import paths


def folders_in(folder: Path | str) -> list[str]:
    """The names of the folders in a folder, links left out; none without it. Raises StoreUnavailable."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.unavailable(error) from None


def user_of_folder(users: Path, part: str) -> str | None:
    """The id of a user folder in `users`, from its name or any document in it; None for a foreign folder."""
    if not part.startswith("~"):
        return path_parts.decode(part)
    folder = users / part
    agents = folder / paths.AGENTS
    places = [folder, *(agents / agent for agent in folders_in(agents))]
    return next((user_id for place in places if (user_id := _named(place, "userId", part))), None)


def project_of_folder(folder: Path) -> str | None:
    """The id of a project's folder; None for a foreign folder."""
    if not folder.name.startswith("~"):
        return path_parts.decode(folder.name)
    return _named(folder, "projectId", folder.name)


def agent_of_folder(folder: Path) -> str | None:
    """The name of an agent's folder; None for a foreign folder."""
    if not folder.name.startswith("~"):
        return path_parts.decode(folder.name)
    return _named(folder, "agentName", folder.name)


def _named(folder: Path, field: str, part: str) -> str | None:
    """The id in a document's field, if this path part was made of it."""
    try:
        data = files.read(folder / paths.FILE, sibling=folder / paths.PREVIOUS)
        document = orjson.loads(data) if data else {}
    except (DocumentDamaged, orjson.JSONDecodeError):  # the next load of its bucket sets it aside
        return None
    value = document.get(field) if isinstance(document, dict) else None
    return value if isinstance(value, str) and value != DEFAULT_AGENT and path_parts.encode(value) == part else None
