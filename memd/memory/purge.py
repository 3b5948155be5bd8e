"""Purge: removes the content of removed facts from every other text of a document. Pure: nothing is mutated.

`TEXTS` lists every field that holds text, with its rule; `NO_TEXT` lists the others. A field that is in neither fails a
test, so that no copy is overlooked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

from memd.memory import doubtful, profiles, refused, scoped
from memd.memory.document import (
    SECTIONS,
    Document,
    Fact,
    Summary,
    facts_of,
    summary_entry,
    summary_versions,
    with_summary_entry,
    withheld_of,
)
from memd.memory.duplicates import tokens
from memd.memory.facts import content_of, id_of, quotes_of, with_lost_proofs
from memd.memory.projects import outbox
from memd.memory.text import fold

SHARE = 0.6
"""A sentence with this share of a removed fact's words says the same."""

LEAST = 0.2
"""A sentence with words that only a removed fact had, this share of its words, does too if no other fact is nearer."""

_COMMON = frozenset(
    tokens(
        "lives live lived likes like loves works work worked born wants plans the a an of in on at to for and or is are"
        " was were be been has have had do does with his her their he she they it its user users s not no from by as"
        " der die das den dem des ein eine einen ist hat sind und im zu von mit auf für seit nicht nutzer nutzerin"
        " le la les l un une est et de du d en dans pas utilisateur utilisatrice sa son ses"
        " el los las una es y que se su sus usuario usuaria con por para al del 用户 ユーザーは"
    )
)
"""Words that say nothing by themselves."""

Rule = Literal["whole", "sentences", "drop", "quote"]
"""whole: it goes only with its fact. sentences: those that say the same are cut. drop: the field goes. quote: a quote
that overlaps with one of the removed facts goes with its entry."""

_FACT_TEXTS: dict[str, Rule] = {
    "content": "whole",
    "subject.person": "whole",
    "subject.relationship": "whole",
    "sourceError": "drop",
    "backstory": "drop",
    "archiveNote": "drop",
    "evidence.quote": "quote",
}
_APART = ("suspended", "doubtful", "refused")
"""The fields of facts that stand apart: each goes as a whole."""

_WITH_PROOFS = ("facts", "archive", "scoped")
"""The fields of facts that stay without the quotes and asides that have to go."""

TEXTS: dict[str, Rule] = {
    **{f"{section}.{name}.summary": "sentences" for name, section in SECTIONS.items()},
    **{f"{section}.{name}.versions.summary": "sentences" for name, section in SECTIONS.items()},
    **{f"{field}.{path}": rule for field in _WITH_PROOFS for path, rule in _FACT_TEXTS.items()},
    "withheld.note": "drop",
    **{f"{field}.{path}": "whole" for field in _APART for path in _FACT_TEXTS},
    "turns.text": "whole",
    "outbox.items": "whole",
    "profile": "whole",
}
"""The fields that hold text, by path; the entries of lists are not numbered. `turns`: those of the said layer, of which
`said.removal` takes whole ones out."""

_FACT_NO_TEXT = (
    "id", "category", "createdAt", "updatedAt", "lastConfirmedAt", "saidAt", "saidOn", "lastSaid", "reviewedAt",
    "validUntil", "source", "scope", "scopeId", "replaces", "origin", "provenBy", "archivedAt", "archiveReason",
    "archivedBy", "replacedBy", "approvedBy", "evidence.thread", "evidence.message", "evidence.saidAt",
    "evidence.order", "evidence.by", "overSince", "visibility", "createdBy", "disputes", "sourceKind", "sourceId",
)  # fmt: skip
NO_TEXT = frozenset((
    "version", "lastUpdated", "userId", "agentName", "ledger", "ledgerFormer", "ledgerFormerRules", "removed", "said",
    "offRecord", "suspended.suspendedAt", "suspended.suspendedWhy", "doubtful.doubtfulAt", "doubtful.doubtfulWhy",
    "refused.refusedAt", "refused.refusedWhy", "projectId", "app", "members", "grave", "outbox.id", "outbox.project",
    "outbox.thread", "profiledAt",
    *(
        f"{section}.{name}.{version}{field}"
        for name, section in SECTIONS.items()
        for version in ("", "versions.")
        for field in ("updatedAt", "lastSaid")
    ),
    *(f"{field}.{name}" for field in (*_WITH_PROOFS, *_APART) for name in _FACT_NO_TEXT),
    *(f"turns.{name}" for name in ("id", "thread", "role", "saidAt", "at", "name")),
    *(f"marks.{name}" for name in ("mark", "as", "why", "at")),
    *(f"withheld.{name}" for name in ("fact", "wanted", "why", "at", "source", "by", "proofs")),
))  # fmt: skip
"""The fields that hold ids, hashes, times and names of settings; of objects named here also all fields inside."""

_SENTENCE = re.compile(r".+?(?:[.!?…]+(?=\s|$)|[。！？；;]+|$)\s*", re.S)
_NAME = re.compile(r"(?<=\S\s)[^\W\d_a-z]\w*|\S*\d\S*")


class Words:
    """The content of removed facts: their names and numbers, all their words, and their quotes."""

    def __init__(self, removed: Sequence[Fact], kept: Iterable[Fact]) -> None:
        kept = list(kept)
        self._kept = [frozenset(tokens(content_of(fact))) - _COMMON for fact in kept]
        known = frozenset[str]().union(*(tokens(content_of(fact)) for fact in kept))
        contents = list(map(content_of, removed))
        self._marks = [marks for text in contents if (marks := names_in(text) - known)]
        self._words = [words for text in contents if (words := frozenset(tokens(text)))]
        known_words = frozenset[str]().union(*self._kept)
        self._own = [(words - _COMMON, words - _COMMON - known_words) for words in self._words]
        self._quotes = [text for fact in removed for text in map(fold, (content_of(fact), *quotes_of(fact))) if text]

    def in_(self, sentence: str) -> bool:
        """Whether a sentence has all names and numbers of a removed fact, or most of its words.

        A name or number that another fact still has does not count.
        """
        has = frozenset(tokens(sentence))
        return any(marks <= has for marks in self._marks) or any(
            len(words & has) >= SHARE * len(words) for words in self._words
        )

    def in_sentence(self, sentence: str) -> bool:
        """Whether a sentence of a summary says the same, perhaps in other words: a removed fact is nearest to it.

        A summary is written anew with the next update; what stays of a removed fact would come back with it.
        """
        has = frozenset(tokens(sentence)) - _COMMON
        nearest = max((len(words & has) for words in self._kept), default=0)
        near = ((own, words) for words, own in self._own if self._kept)  # with no other fact nothing is nearest
        return self.in_(sentence) or any(
            len(own & has) >= max(1, LEAST * len(words)) and len(words & has) > nearest for own, words in near
        )

    def in_quote(self, quote: str) -> bool:
        """Whether a quote holds one of a removed fact, or is part of one."""
        text = fold(quote)
        return bool(text) and any(text in other or other in text for other in self._quotes)


class Told(Protocol):
    """What has to go, as a test of texts."""

    def in_(self, sentence: str) -> bool:
        """Whether a note or an aside says it."""
        ...

    def in_sentence(self, sentence: str) -> bool:
        """Whether a sentence of a summary says it."""
        ...

    def in_quote(self, quote: str) -> bool:
        """Whether a quote says it."""
        ...


def purge(document: Document, removed: Iterable[Fact], now: str) -> Document:
    """The document without the content of these facts, which must have left its facts and archive already."""
    removed = list(removed)
    if not removed:
        return document
    ids = set(map(id_of, removed))
    document = profiles.without_facts(document, ids)
    if "withheld" in document:
        wishes = [entry for entry in withheld_of(document) if entry.get("fact") not in ids]
        document = {**document, "withheld": wishes}
    return purge_of(document, Words(removed, facts_of(document)), now)


def purge_of(document: Document, told: Told, now: str) -> Document:
    """The document without what says this: sentences of summaries, asides, notes, quotes.

    Doubtful, refused and scoped facts that say it go as a whole, and so does what waits to be delivered to a project.
    Another fact that loses a quote still names the turn that proved it (`provenBy`).
    """
    document = profiles.without_texts(document, told.in_)
    document = outbox.without_items(document, lambda item: any(map(told.in_, outbox.texts_of(item))))
    for apart in (doubtful, refused, scoped):
        if held := apart.facts_of(document):
            quoted = apart is not scoped
            document = apart.with_facts(document, [fact for fact in held if not _says(fact, told, quoted=quoted)])
    document = without_told(document, told, now)
    return {name: _purged(value, name, told) for name, value in document.items()}


def without_told(document: Document, told: Told, now: str) -> Document:
    """The document without the sentences of its summaries, in all versions, that say this."""
    for name in SECTIONS:
        entry = summary_entry(document, name)
        if "versions" in entry:
            entry = {**entry, "versions": [_cut(version, told) for version in summary_versions(document, name)]}
        if (cut := _cut(entry, told)) != summary_entry(document, name):
            document = with_summary_entry(document, name, cut if cut is entry else {**cut, "updatedAt": now})
    return document


def _says(fact: Fact, told: Told, *, quoted: bool) -> bool:
    return told.in_(content_of(fact)) or (quoted and any(map(told.in_quote, quotes_of(fact))))


def _cut(entry: Summary, told: Told) -> Summary:
    """A summary, or an earlier version, without the sentences that say the same; the very same when there are none."""
    text = entry.get("summary")
    if not isinstance(text, str):
        return entry
    kept = without_sentences(text, told)
    return entry if kept == text.strip() else {**entry, "summary": kept}


def without_sentences(text: str, told: Told) -> str:
    """A text without the sentences that say this."""
    return "".join(part for part in _SENTENCE.findall(text) if not told.in_sentence(part)).strip()


def _purged(value: Any, path: str, words: Told) -> Any:
    """A value without the fields and quotes that have to go."""
    if isinstance(value, list):
        return [_purged(entry, path, words) for entry in value if not _is_lost(entry, path, words)]
    if isinstance(value, dict) and path not in NO_TEXT:
        fields = ((name, entry, f"{path}.{name}") for name, entry in value.items())
        left = {name: _purged(entry, at, words) for name, entry, at in fields if not _is_dropped(entry, at, words)}
        return with_lost_proofs(left, value) if path in _WITH_PROOFS else left
    return value


def _is_dropped(value: Any, path: str, words: Told) -> bool:
    return TEXTS.get(path) == "drop" and isinstance(value, str) and words.in_(value)


def _is_lost(entry: Any, path: str, words: Told) -> bool:
    """Whether an entry of a list has a quote that has to go."""
    quote = entry.get("quote") if isinstance(entry, dict) else None
    return TEXTS.get(f"{path}.quote") == "quote" and isinstance(quote, str) and words.in_quote(quote)


def content_words(text: str) -> frozenset[str]:
    """The tokens that say something by themselves."""
    return frozenset(tokens(text)) - _COMMON


def names_in(text: str) -> frozenset[str]:
    """The tokens of names and numbers: words with a capital that do not begin the sentence, and those with a digit."""
    return frozenset(token for name in _NAME.findall(text) for token in tokens(name))
