"""A person's changes of a profile. Pure functions: nothing is mutated, refusals raise Rejected."""

from __future__ import annotations

from datetime import datetime

from memd.memory import profiles
from memd.memory.document import Document, complete, revised
from memd.memory.gates.instructions import is_markup
from memd.memory.hand.steps import Edited, refuse
from memd.memory.profiles import ProfileEntry
from memd.push.redaction import holds_secret
from memd.push.times import iso


def set_field(document: Document, name: str, value: object, now: datetime) -> Edited:
    """The document with a field as a person words it; no model overwrites it. Raises Rejected."""
    document = complete(document)
    table = profiles.fields_for(document)
    field = profiles.field_name(name, table)
    clean = profiles.checked(field, value, table)
    for text in profiles.texts_of(clean):
        if holds_secret(text):
            refuse("E_PROFILE_SECRET", f"{field} contains a secret (a key, token, password or card number)", field)
        if is_markup(text):
            refuse("E_PROFILE_MARKUP", f"{field} contains tags, links or images as markup", field)
    held = profiles.profile_of(document).get(field)
    if held is not None and (held.value, held.source) == (clean, profiles.MANUAL):
        return Edited(document, field)
    return Edited(revised(profiles.with_field(document, field, clean, iso(now)), iso(now)), field)


def unset_field(document: Document, name: str, now: datetime) -> Edited:
    """The document without a field; a model may fill it again. Raises Rejected for a name that is no field."""
    document = complete(document)
    field = profiles.field_name(name, profiles.fields_for(document))
    left = profiles.without_field(document, field)
    return Edited(document if left is document else revised(left, iso(now)), field)


def shown(entries: dict[str, ProfileEntry]) -> dict[str, dict[str, object]]:
    """A profile as doors show it."""
    return {
        name: {
            "value": entry.value,
            "updatedAt": entry.updated_at,
            "source": entry.source,
            "factIds": list(entry.fact_ids),
        }
        for name, entry in entries.items()
    }
