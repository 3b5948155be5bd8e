"""Pages as HTML: the templates, and the filters with which they show text that nobody trusts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from memd.http.console.logins import Login
from memd.http.console.page import Page, address
from memd.http.console.translations import DEFAULT, LANGUAGES, translate
from memd.memory.facts import confidence_of, confirmations_of, evidence_of
from memd.printable import printable
from memd.push.times import moment

SHOWN_CHARS = 2_000
"""Characters of one text that a page shows; of a longer one it says how many there are."""

ASSETS = {
    "console.css": "text/css; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files that pages load, with their types."""


@cache
def asset(name: str) -> bytes:
    """The bytes of a file that pages load."""
    return files(__package__ or "").joinpath("static", name).read_bytes()


def asset_address(name: str) -> str:
    """The address of a file that pages load. It changes with the file, so that a browser may keep it."""
    return f"/console/static/{name}?v={hashlib.sha256(asset(name)).hexdigest()[:12]}"


def text(value: object, most: int = SHOWN_CHARS) -> Markup:
    """Text of a user or a model: escaped, apart from the direction of what is around it, and cut."""
    whole = str(value)
    more = f"… ({len(whole):,})" if len(whole) > most else ""
    return Markup("<bdi>{}{}</bdi>").format(printable(whole[:most]), more)


def lines(value: object, most: int = SHOWN_CHARS) -> Markup:
    """As `text`, with its line ends kept."""
    cut = str(value)[:most]
    more = f"… ({len(str(value)):,})" if len(str(value)) > most else ""
    return Markup("<br>").join(Markup("<bdi>{}</bdi>").format(printable(line)) for line in cut.splitlines()) + more


def quoted(value: object, quote: object) -> Markup:
    """As `lines`, with the first place of the quote marked."""
    before, found, after = str(value)[:SHOWN_CHARS].partition(str(quote)) if quote else (str(value), "", "")
    if not found:
        return lines(value)
    return lines(before) + Markup("<mark>{}</mark>").format(lines(found)) + lines(after)


def among(value: object, words: Mapping[str, str]) -> object:
    """The words for a value of a document, from a table; any other value as it is."""
    return words.get(value, value) if isinstance(value, str) else value


def when(value: object) -> Markup:
    """A moment, of a document or as a datetime, in UTC."""
    found = value if isinstance(value, datetime) else moment(str(value)) if value else None
    if found is None:
        return Markup("–")
    utc = found.astimezone(UTC)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        utc.isoformat(timespec="seconds"), f"{utc:%Y-%m-%d %H:%M:%S}", f"{utc:%Y-%m-%d %H:%M}"
    )


def seconds(value: float | None) -> str:
    """A length of time for people: 0.4 s, 12 s, 3 min, 5 h, 2 d."""
    if value is None:
        return "–"
    if value < 10:
        return f"{value:.1f} s"
    for size, unit in ((60, "s"), (60, "min"), (48, "h")):
        if value < 1.5 * size:
            return f"{value:.0f} {unit}"
        value /= size if unit != "h" else 24
    return f"{value:.0f} d"


def number(value: object) -> str:
    """A number with its thousands apart; a dash for none."""
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def points(values: Sequence[float | None], width: float, height: float) -> str:
    """The points of a line through these values, for an SVG of this size; a missing value counts as 0."""
    known = [value or 0 for value in values]
    top = max(known, default=0) or 1
    step = width / max(1, len(known) - 1)
    return " ".join(f"{place * step:.1f},{height - 1 - value / top * (height - 2):.1f}"
                    for place, value in enumerate(known))  # fmt: skip


@cache
def environment() -> Environment:
    """The templates. An undefined name is an error, and everything is escaped unless it is markup."""
    made = Environment(
        loader=PackageLoader(__package__ or "", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "text": text,
        "lines": lines,
        "quoted": quoted,
        "among": among,
        "confidence": confidence_of,
        "confirmations": confirmations_of,
        "evidence": evidence_of,
        "when": when,
        "seconds": seconds,
        "number": number,
        "points": points,
        "printable": printable,
    }
    made.globals |= {"address": address, "languages": LANGUAGES, "asset": asset_address}
    return made


def render(template: str, data: Mapping[str, Any], frame: Mapping[str, Any]) -> bytes:
    """A page. `frame`: what every page has, see `frame_of`."""
    return environment().get_template(template).render(**frame, **data).encode()


def frame_of(
    language: str,
    path: str,
    *,
    login: Login | None,
    pages: Sequence[Page],
    notes: Sequence[tuple[str, Mapping[str, object]]] = (),
) -> dict[str, Any]:
    """What every template gets: words, the login, the menu of the pages that it may open, the notes to show."""
    say: Callable[..., str] = partial(translate, language)
    return {
        "t": say,
        "n": partial(_counted, language),
        "language": language,
        "path": path,
        "login": login,
        "scopes": login.token.scopes if login else frozenset(),
        "menu": [page for page in pages if page.menu and not page.of_user],
        "tabs": [page for page in pages if page.menu and page.of_user],
        "notes": [say(words, **values) for words, values in notes],
    }


def _counted(language: str, count: int, one: str, many: str) -> str:
    """A number with its noun. `one`, `many`: English words with {count}; the plural is the key of the translations."""
    words = one if language == DEFAULT and count == 1 else many
    return translate(language, words, count=f"{count:,}")
