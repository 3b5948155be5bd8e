"""Wordings: recognises facts of the document that one of the offline extractor's rules could have written."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from memd.extraction.offline.forms import Form, all_forms


class KnownFact(NamedTuple):
    """A fact of the document, read by its wording. `template`: the text before and after the value."""

    id: str
    content: str
    kind: str
    value: str
    template: tuple[str, str]
    form: Form | None


def recognise(fact_id: str, content: str) -> KnownFact:
    """The kind and value of a fact that a form could have stored; any other fact gets an empty kind."""
    for form in _longest_first():
        before, _, after = form.stored.partition("{0}")
        value = content[len(before) : len(content) - len(after)].strip()
        if value and content.startswith(before) and content.endswith(after) and form.value.match(value):
            return KnownFact(fact_id, content, form.kind, value.casefold(), (before, after), form)
    return KnownFact(fact_id, content, "", "", ("", ""), None)


@cache
def _longest_first() -> list[Form]:
    """ "The user is from {0}." is not "The user is {0}." with another value."""
    return sorted((form for form in all_forms() if "{1}" not in form.stored), key=lambda form: -len(form.stored))
