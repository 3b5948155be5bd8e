"""The outbox: what an update of a user's memory has for a project, kept in the user's document until it is there.

It is written in the same replace as the user's facts, so it is neither lost nor made twice. A drain delivers it under
the project's own lock; an entry leaves at the user's next commit once the project knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memd.context import digest
from memd.memory.document import Document, Fact, revision_of
from memd.memory.facts import Evidence

Item = dict[str, Any]
"""One change: `do` (add, confirm, retire), `proofs` (identities of the messages that it quotes), and

add: `fact` as the user's memory would have it, `replaces` (ids of the project's facts); confirm, retire: `id`,
`evidence`; retire: `note`.
"""


class OutboxEntry(NamedTuple):
    """What one commit has for one project. `thread`: the conversation, whose name says by which app it came."""

    id: str
    project_id: str
    thread_id: str
    items: tuple[Item, ...]

    def as_dict(self) -> dict[str, Any]:
        """The entry as the document keeps it."""
        return {"id": self.id, "project": self.project_id, "thread": self.thread_id, "items": list(self.items)}


def added(fact: Fact, replaces: Iterable[str], proofs: Iterable[str]) -> Item:
    """A new fact for a project."""
    return {"do": "add", "fact": fact, "replaces": list(replaces), "proofs": list(proofs)}


def confirmed(fact_id: str, evidence: Sequence[Evidence], proofs: Iterable[str]) -> Item:
    """A fact of the project that the user said again."""
    return {"do": "confirm", "id": fact_id, "evidence": list(evidence), "proofs": list(proofs)}


def retired(fact_id: str, evidence: Sequence[Evidence], note: str, proofs: Iterable[str]) -> Item:
    """A fact of the project that the user said is over."""
    return {"do": "retire", "id": fact_id, "evidence": list(evidence), "note": note, "proofs": list(proofs)}


def entry_of(document: Document, project_id: str, thread_id: str, items: Sequence[Item]) -> OutboxEntry:
    """The entry that the next revision of a document writes."""
    name = digest("outbox", project_id, thread_id, str(revision_of(document) + 1), size=8)
    return OutboxEntry(name, project_id, thread_id, tuple(items))


def outbox_of(document: Document) -> list[OutboxEntry]:
    """What waits to be delivered, oldest first; entries broken by hand are left out."""
    entries = document.get("outbox")
    read = map(_entry, entries if isinstance(entries, list) else ())
    return [entry for entry in read if entry is not None]


def with_entries(document: Document, entries: Sequence[OutboxEntry]) -> Document:
    """The document with these entries at the end of its outbox."""
    if not entries:
        return document
    return {**document, "outbox": [*document.get("outbox", ()), *(entry.as_dict() for entry in entries)]}


def without_entries(document: Document, ids: Collection[str]) -> Document:
    """The document without the entries of these ids; without the field when nothing waits."""
    if not ids or "outbox" not in document:
        return document
    kept = [entry.as_dict() for entry in outbox_of(document) if entry.id not in ids]
    rest = {name: value for name, value in document.items() if name != "outbox"}
    return {**rest, "outbox": kept} if kept else rest


def without_items(document: Document, goes: Callable[[Item], bool]) -> Document:
    """The document without the items for which this holds, in any entry; the very same when there are none."""
    entries = outbox_of(document)
    left = [entry._replace(items=tuple(item for item in entry.items if not goes(item))) for entry in entries]
    if left == entries:
        return document
    return {**document, "outbox": [entry.as_dict() for entry in left]}


def texts_of(item: Item) -> list[str]:
    """The sentence and the quotes of an item."""
    fact = item.get("fact")
    told = [fact.get("content"), *_quotes(fact)] if isinstance(fact, dict) else []
    return [text for text in (*told, *_quotes(item)) if isinstance(text, str)]


def _quotes(holder: Mapping[str, Any]) -> list[Any]:
    entries = holder.get("evidence")
    return [entry.get("quote") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _entry(value: object) -> OutboxEntry | None:
    match value:
        case {"id": str(name), "project": str(project), "thread": str(thread), "items": list(items)} if project:
            return OutboxEntry(name, project, thread, tuple(item for item in items if isinstance(item, dict)))
    return None
