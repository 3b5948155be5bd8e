"""The words of the console in the languages of its readers. The English words are the keys."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml

from memd.printable import printable

LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}
"""The languages by code, each with its own name."""

DEFAULT = "en"

MAX_CHARS = 500
"""Of words that have no translation. No sentence of the interface is as long."""


@cache
def words(language: str) -> Mapping[str, str]:
    """The translations of a language by the English words; of English there are none."""
    if language == DEFAULT:
        return {}
    text = files(__package__ or "").joinpath(f"words_{language}.yaml").read_text(encoding="utf-8")
    found: Mapping[str, str] = yaml.safe_load(text)
    return found


def translate(language: str, english: object, **values: object) -> str:
    """The words in this language, with {name}s filled in; words without a translation stay English.

    A word of a document or a server, such as a category, may be anything: it is cut and made printable.
    """
    found = words(language).get(english) if isinstance(english, str) else None
    text = printable(str(english)[:MAX_CHARS]) if found is None else found
    return text.format_map(values) if values else text


def preferred(accept_language: str) -> str:
    """The language that a browser asks for first, among those there are."""
    for entry in accept_language.split(",")[:20]:
        code = entry.partition(";")[0].strip().lower().partition("-")[0]
        if code in LANGUAGES:
            return code
    return DEFAULT
