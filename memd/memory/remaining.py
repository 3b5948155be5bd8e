"""Remaining: what an ended fact tells besides what has ended stays, as a fact of its own.

"Lives in Porto with Ana and works at Acme" is over with the job; that the user lives in Porto is not. A part stays when
the words that ended the fact touch another part and not this one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from memd.context import Message
from memd.memory.document import Fact
from memd.memory.draft import Draft
from memd.memory.duplicates import IS_CJK, tokens
from memd.memory.fact_ids import new_id
from memd.memory.facts import archive_note, archive_reason, content_of, id_of, quotes_of, replaced_by
from memd.memory.gates.refusal import content_refusal
from memd.memory.gates.said_names import is_common
from memd.memory.outdated import names_of
from memd.memory.purge import names_in
from memd.memory.superseding import Later, words_of
from memd.memory.telling import telling

_SENTENCE = re.compile(r"[^.!?。！？\n]+")
_MAX_CHARS = 500
"""Characters of a sentence that is looked at; nobody says so much to end something."""

_BEFORE_ARTICLE = re.compile(r"(?:\S+ ){0,6}?(?=an? )")
_BY_WORD = {"replaced", "retired"}
_DIGIT = re.compile(r"\d")
_END = ".。 "
_DROPPED = frozenset(
    {"archivedAt", "archiveReason", "archivedBy", "archiveNote", "replacedBy", "overSince", "replaces"}
)
"""Fields of an archived fact that what remains of it has not."""


def keep_rest(draft: Draft, sent: Sequence[Message]) -> None:
    """Keep what still holds of the compound facts that this update has replaced or retired."""
    ended = [entry for entry in draft.archived if id_of(entry) in draft.known and archive_reason(entry) in _BY_WORD]
    if not ended:
        return
    over = [
        sentence
        for message in sent
        if message.role == "user"
        for sentence in _SENTENCE.findall(message.content)
        if len(sentence) <= _MAX_CHARS and telling().over.search(sentence)
    ]
    added = [draft.facts[fact_id] for fact_id in draft.added if fact_id in draft.facts]
    known = frozenset[str]().union(*(names_of(content_of(fact)) for fact in draft.facts.values()))
    for entry in ended:
        new = draft.facts.get(replaced_by(entry))
        told = [content_of(new), *quotes_of(new)] if new else [archive_note(entry), *map(content_of, added)]
        rest = rest_of(entry, [new] if new else added, told, over)
        for content in rest if new is None else filter(partial(_names_more, known=known), rest):
            if content_refusal(content, draft.settings, quotes_of(entry)[:1]):
                continue
            fact_id = new_id(draft.old, draft.revision, content, 0, draft.used)
            kept = {name: value for name, value in entry.items() if name not in _DROPPED}
            draft.put({**kept, "id": fact_id, "content": content})


def _names_more(content: str, known: frozenset[str]) -> bool:
    """Whether a sentence has a name that no fact has now; a day or month is none."""
    return any(not (_DIGIT.search(name) or is_common(name)) for name in names_of(content) - known)


def rest_of(old: Fact, new: Sequence[Fact], told: Sequence[str], over: Sequence[str]) -> list[str]:
    """The parts of a compound fact that still hold, as sentences. `told`: the words that ended it; where they touch no
    part, `over` does: further sentences of the user about what is over."""
    subject, parts = _parts(content_of(old))
    ended = [any(later.supersedes({**old, "content": part}) for later in map(Later, new)) for part in parts]
    for words in (told, over):
        said = frozenset[str]().union(*map(_marks, words)) - _marks(subject)
        touched = [is_over or not said.isdisjoint(_marks(part)) for part, is_over in zip(parts, ended, strict=True)]
        if any(touched):
            return [part for part, is_touched in zip(parts, touched, strict=True) if not is_touched]
    return []


def _parts(content: str) -> tuple[str, list[str]]:
    """The subject of a sentence, and its parts as sentences with that subject; one part when it is not compound."""
    found = telling().subject.match(content)
    first, *others = telling().joins.split(content)
    if found is None or not others:
        return "", [content]
    stop = "。" if IS_CJK.search(content) else "."
    parts = [first]
    for other in others:
        head = _BEFORE_ARTICLE.match(first) if other.startswith(("a ", "an ")) else found
        if head is None:
            return "", [content]
        parts.append(head[0] + other)
    return found[0], [part.rstrip(_END) + stop for part in parts]


def _marks(text: str) -> frozenset[str]:
    """The words of a text that tell something: stems, and in CJK pairs of characters."""
    bare = telling().light.sub(" ", text)
    pairs = filter(IS_CJK.match, tokens(bare))
    return names_in(text).union(pairs, (word for word in words_of(bare) if len(word) > 3))
