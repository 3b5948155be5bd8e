"""Profiles: who a user or a project is, at a glance, as every prompt begins with it."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from memd.cli.common import Agent, Json, User, echo, echo_json, nothing, settings
from memd.client import Memd
from memd.errors import Rejected
from memd.memory.profiles import PROJECT_FIELDS, USER_FIELDS, field_name
from memd.printable import printable

Field = Annotated[str, typer.Argument(metavar="FIELD", help="A field, such as profession or programming_languages.")]
Values = Annotated[list[str], typer.Argument(metavar="VALUE...", help="The value; of a list, its items.")]
OfProject = Annotated[bool, typer.Option("--project", help="The id is that of a project.")]
AsUser = Annotated[str | None, typer.Option("--as", metavar="USER", help="With --project: as this user.")]

profile = typer.Typer(
    help="Show, set, unset or edit a profile.\n\nEvery prompt begins with it. What a person has set, no model changes.",
    no_args_is_help=True,
)


@profile.command()
def show(
    user: User, agent: Agent = "", project: OfProject = False, as_user: AsUser = None, as_json: Json = False
) -> None:
    """Show a profile: each field with its value, and who set it.

    Example: memd profile show ana
    """
    with Memd(settings()) as memd:
        found = memd.project(user, as_user=as_user).profile() if project else memd.profile(user, agent_name=agent)
    if as_json:
        echo_json(found)
        return
    for name, entry in found.items():
        value = entry["value"]
        text = "; ".join(map(_text, value)) if isinstance(value, list) else str(value)
        source = entry.get("source")
        if text:
            echo(f"{name}: {printable(text)}" + (f"  ({source})" if source else ""))
    if not any(entry["value"] for entry in found.values()):
        nothing("no profile")


@profile.command("set")
def set_(
    user: User, field: Field, values: Values, agent: Agent = "", project: OfProject = False, as_user: AsUser = None
) -> None:
    """Set a field by hand. `content` has the user's own instructions to the assistant.

    Example: memd profile set ana profession "district nurse"

    Example: memd profile set ana programming_languages Python Rust
    """
    table = PROJECT_FIELDS if project else USER_FIELDS
    value: str | list[str] = values if table[field_name(field, table)].kind == "list" else " ".join(values)
    with Memd(settings()) as memd:
        if project:
            memd.project(user, as_user=as_user).set_profile(field, value)
        else:
            memd.set_profile(user, field, value, agent_name=agent)
    echo(f"{printable(field)} set")


@profile.command()
def unset(user: User, field: Field, agent: Agent = "", project: OfProject = False, as_user: AsUser = None) -> None:
    """Take a field out; a model may fill it again.

    Example: memd profile unset ana profession
    """
    with Memd(settings()) as memd:
        if project:
            memd.project(user, as_user=as_user).unset_profile(field)
        else:
            memd.unset_profile(user, field, agent_name=agent)
    echo(f"{printable(field)} unset")


@profile.command()
def edit(user: User, agent: Agent = "", project: OfProject = False, as_user: AsUser = None) -> None:
    """Edit a profile as JSON in $EDITOR: fields that are taken out are unset, others are set as they stand.

    Example: memd profile edit ana
    """
    with Memd(settings()) as memd:
        one = memd.project(user, as_user=as_user) if project else None
        found = one.profile() if one else memd.profile(user, agent_name=agent)
        table = PROJECT_FIELDS if project else USER_FIELDS
        before = {name: entry["value"] for name, entry in found.items() if name in table}
        after = _parsed(_edited(orjson.dumps(before, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)))
        for name, value in after.items():
            if before.get(name) != value:
                one.set_profile(name, value) if one else memd.set_profile(user, name, value, agent_name=agent)
        for name in before.keys() - after.keys():
            one.unset_profile(name) if one else memd.unset_profile(user, name, agent_name=agent)
    echo("edited")


def _edited(text: bytes) -> bytes:
    """A text as its reader left it in their editor. Raises Rejected when that ends with an error."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(text)
        file.flush()
        if subprocess.run([*shlex.split(editor), file.name], check=False).returncode != 0:
            raise Rejected("E_EDITOR", f"{editor} ended with an error; nothing was changed")
        return Path(file.name).read_bytes()


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Rejected("E_JSON", f"this is not JSON at line {error.lineno}, column {error.colno}") from None
    if not isinstance(value, dict):
        raise Rejected("E_JSON", "a profile is a JSON object of fields and values")
    return value


def _text(item: object) -> str:
    return str(item["decision"]) if isinstance(item, dict) else str(item)
