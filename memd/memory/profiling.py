"""Profiling: what an update says of the user's profile, as far as facts of the same document bear it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memd.errors import Rejected
from memd.extraction.update import ProfileItem
from memd.memory import profiles
from memd.memory.draft import Draft
from memd.memory.duplicates import tokens
from memd.memory.facts import MANUAL, content_of, person_of
from memd.memory.gates.instructions import text_refusal
from memd.memory.profiles import USER_FIELDS, Value
from memd.memory.purge import names_in
from memd.push.redaction import holds_secret

SHARE = 0.5
"""Share of a value's words that the facts it names must have; names and numbers must all stand there."""


def fill(draft: Draft, items: Sequence[ProfileItem], *, asked: bool) -> None:
    """Note the fields that facts bear out. `asked`: the extractor was asked; otherwise none counts."""
    held = profiles.profile_of(draft.old)
    for index, item in enumerate(items):
        name = item.field
        if not asked:
            reason = "not_asked"
        elif name not in profiles.OFFERED:
            reason = "bad_profile"
        elif name in held and held[name].source == MANUAL:
            reason = "manual"
        else:
            reason = _fill(draft, name, item)
        if reason:
            draft.refuse(reason, "profile", index)
    if asked:
        draft.profiled = True


def _fill(draft: Draft, name: str, item: ProfileItem) -> str:
    """Note one field; the reason why not, or ""."""
    ids = [one for one in dict.fromkeys(item.facts) if one in draft.facts]
    if not ids or any(person_of(draft.facts[one]) for one in ids):
        return "unknown_id"
    field = USER_FIELDS[name]
    given: object = [part.strip() for part in item.value.split(";")] if field.kind == "list" else item.value
    try:
        value = profiles.checked(name, given, USER_FIELDS)
    except Rejected:  # the model's word, not a person's: counted like any item that is not applied
        return "bad_profile"
    texts = profiles.texts_of(value)
    if any(map(holds_secret, texts)):
        return "secret"
    if reason := next(filter(None, map(text_refusal, texts)), None):
        return reason
    if field.kind in ("text", "list") and not _is_borne_out(value, (content_of(draft.facts[one]) for one in ids)):
        return "support"
    draft.profile[name] = value, tuple(ids)
    return ""


def _is_borne_out(value: Value, sentences: Iterable[str]) -> bool:
    """Whether the facts have a value's names and numbers, and most of its words; of a list, of each item."""
    said = frozenset(token for sentence in sentences for token in tokens(sentence))

    def is_said(text: str) -> bool:
        words = frozenset(tokens(text))
        return names_in(text) <= said and len(words & said) >= SHARE * len(words)

    return bool(said) and all(map(is_said, profiles.texts_of(value)))
