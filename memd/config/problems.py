"""One sentence for a setting that is wrong: its name, where it was set, what is expected. Never the value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from msgspec import ValidationError, convert

from memd.config.settings import PriceSettings

_UNKNOWN = re.compile("Object contains unknown field `(.*)`$")
_PLACE = re.compile(r"(.*) - at (`key` in )?`\$\.?(.*)`", re.DOTALL)
GONE = {"apply.eviction": "a full memory is trimmed by one rule"}
"""Settings of older versions, and what took their place."""

_INDEX = re.compile(r"\[[^\]]*\]")


def sentence(error: ValidationError, origins: Mapping[str, str], tree: dict[str, Any], kinds: Mapping[str, Any]) -> str:
    """The sentence for an error of msgspec. `origins`: where each setting was set; `kinds`: its type."""
    match = _PLACE.fullmatch(str(error))
    reason, key, place = match.groups() if match else (str(error), None, "")
    if key:
        reason = "its names must be text"
    if "[...]" in place:  # msgspec does not name the key of a mapping; the prices are the only mapping
        place = place.replace("[...]", f".{_wrong_price(tree)}")
    name = _INDEX.sub("", place)
    if unknown := _UNKNOWN.match(reason):
        name = ".".join(part for part in (name, unknown[1]) if part)
        name = next((known for known in origins if known.startswith(f"{name}.")), name)
        gone = f" is gone: {GONE[name]}; remove it (see CHANGELOG.md)" if name in GONE else ""
        return f"{'' if gone else 'unknown '}setting {name}{_from(origins.get(name))}{gone}"
    if reason.startswith("Invalid enum value"):  # msgspec would quote the value
        reason = f"expected one of {', '.join(get_args(kinds[name]))}"
    if reason.startswith("Expected `array`"):
        reason = 'expected a list, such as ["a", "b"]'
    reason = reason.replace("`", "")
    setting = next((known for known in origins if name == known or name.startswith(f"{known}.")), "")
    return f"setting {name or 'settings'}{_from(origins.get(setting))}: {reason[:1].lower()}{reason[1:]}"


def _wrong_price(tree: dict[str, Any]) -> str:
    """The first model with prices that are wrong."""
    for model, price in tree["extraction"]["prices"].items():
        try:
            convert(price, PriceSettings, strict=False)
        except ValidationError:
            return str(model)
    return ""


def _from(origin: str | None) -> str:
    return "" if origin in {None, "default"} else f" (from {origin})"
