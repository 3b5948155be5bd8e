"""What is wrong with a setting, in one sentence: its name, where it was set, what is expected. Never the value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from msgspec import ValidationError, convert

from memd.config import PriceSettings

_UNKNOWN = re.compile("Object contains unknown field `(.*)`$")
_PLACE = re.compile(r"(.*) - at (`key` in )?`\$\.?(.*)`", re.DOTALL)
_INDEX = re.compile(r"\[[^\]]*\]")


def sentence(error: ValidationError, origins: Mapping[str, str], tree: dict[str, Any], kinds: Mapping[str, Any]) -> str:
    """One sentence for the first thing wrong: the name, where it was set, and what is expected; never the value."""
    found = _PLACE.fullmatch(str(error))
    reason, key, place = found.groups() if found else (str(error), None, "")
    if key:
        reason = "its names must be texts"
    if "[...]" in place:  # msgspec does not name the members of a mapping, and the prices are the only one
        place = place.replace("[...]", f".{_wrong_price(tree)}")
    name = _INDEX.sub("", place)
    if unknown := _UNKNOWN.match(reason):
        name = ".".join(part for part in (name, unknown[1]) if part)
        name = next((known for known in origins if known.startswith(f"{name}.")), name)
        return f"unknown setting {name}{_from(origins.get(name))}"
    if reason.startswith("Invalid enum value"):  # msgspec goes on with the value
        reason = f"expected one of {', '.join(get_args(kinds[name]))}"
    reason = reason.replace("`", "")
    setting = next((known for known in origins if name == known or name.startswith(f"{known}.")), "")
    return f"setting {name or 'settings'}{_from(origins.get(setting))}: {reason[:1].lower()}{reason[1:]}"


def _wrong_price(tree: dict[str, Any]) -> str:
    """The first model whose prices are none."""
    for model, price in tree["extraction"]["prices"].items():
        try:
            convert(price, PriceSettings, strict=False)
        except ValidationError:
            return str(model)
    return ""


def _from(origin: str | None) -> str:
    return "" if origin in {None, "default"} else f" (from {origin})"
