"""Which facts the model sees: all of a small memory, of one above ENOUGH facts those that new messages may change.

Always the facts under review and some that may be merged, those quoted from the thread's last turns, and those that
share a name or number with the new messages; the rest by the words that they share, of which rare ones count more.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from memd.context import Message
from memd.extraction.protocol import Maintenance
from memd.memory import merging
from memd.memory.document import Document, Fact, facts_of
from memd.memory.facts import category_of, content_of, evidence_of, id_of, is_correction, readable_facts, subject_of
from memd.memory.text import CJK, fold
from memd.recall.words import beginnings, roots

ENOUGH = 100
"""Facts that a request shows; a memory of no more is shown whole."""

MOST = 200
"""Facts that a request shows at most, however many share a name or number with the messages."""

LAST_TURNS = 20
"""Turns of the thread whose facts are always shown: the last ones that facts quote."""

CHARS = 40_000
"""Characters of the messages that are compared, the newest: three times what makes a key due at once."""

CONTEXT_WEIGHT = 0.5
"""Weight of a word that only the assistant or an earlier turn says."""

SIGNAL_WEIGHT = 2.0
"""Weight of a signal that names the fact's category, as much as a word that one fact in e² has."""

REPLACED_IN_OTHER_WORDS = ("identity", "constraint", "decision", "goal", "event")
"""Categories in the order in which their facts are shown when they share no word with the messages: "lives in Porto" is
replaced by "we moved"."""

_WORD = re.compile(rf"[^\W_{CJK}]+")
_IS_CJK = re.compile(f"[{CJK}]")
_SENTENCE_END = re.compile(r"[.!?:;]\W*\Z")


def shown(
    document: Document, thread_id: str, new: Sequence[Message], before: Sequence[Message], maintenance: Maintenance
) -> frozenset[str] | None:
    """The ids of the facts to show; None: all of them. The same input gives the same ids."""
    if len(facts_of(document)) <= ENOUGH or len(facts := readable_facts(document)) <= ENOUGH:
        return None
    asked = {*maintenance.review, *merging.neighbours(document, maintenance.merge)}
    quoted = frozenset(_last_quoted(facts, thread_id))
    said = _newest(message.content for message in new if message.role == "user")
    words, text = frozenset(fold(word) for word in _WORD.findall(said)), fold(said)
    always = [
        id_of(fact) in asked
        or not quoted.isdisjoint(_quoted(fact, thread_id))
        or not words.isdisjoint(_marks(content_of(fact)))
        or _names_person(fact, text)
        for fact in facts
    ]
    scores = _scores(facts, said, new, before)
    order = sorted(range(len(facts)), key=lambda place: (not always[place], -scores[place], -place))  # then the newest
    return frozenset(id_of(facts[place]) for place in order[: min(MOST, max(ENOUGH, sum(always)))])


def _scores(facts: Sequence[Fact], said: str, new: Sequence[Message], before: Sequence[Message]) -> list[float]:
    """How much each fact has to do with the messages: the rarity of each word that both have, added up.

    What shares nothing is below 0, in the order of REPLACED_IN_OTHER_WORDS.
    """
    weights = dict.fromkeys(_terms(_newest(message.content for message in (*before, *new))), CONTEXT_WEIGHT)
    weights |= dict.fromkeys(_terms(said), 1.0)
    signals = frozenset[str]().union(*(message.signals for message in new))
    held = [weights.keys() & _terms(content_of(fact)) for fact in facts]
    frequency = Counter(term for shared in held for term in shared)
    rarity = {term: weights[term] * math.log(1 + len(facts) / count) for term, count in frequency.items()}
    scores = []
    for fact, shared in zip(facts, held, strict=True):
        category = category_of(fact)
        hinted = category in signals or ("correction" in signals and is_correction(fact))
        score = sum(rarity[term] for term in sorted(shared)) + SIGNAL_WEIGHT * hinted
        scores.append(score or -_order(category))
    return scores


def _order(category: str) -> float:
    """The place of a category among those that are replaced in other words; the last for any other."""
    known = category in REPLACED_IN_OTHER_WORDS
    return 1.0 + (REPLACED_IN_OTHER_WORDS.index(category) if known else len(REPLACED_IN_OTHER_WORDS))


@lru_cache(maxsize=8_192)
def _terms(text: str) -> frozenset[str]:
    return frozenset(chain.from_iterable(map(_with_beginnings, roots(text))))


@lru_cache(maxsize=16_384)
def _with_beginnings(root: str) -> tuple[str, ...]:
    return (root, *(f"^{begin}" for begin in beginnings(root)))


@lru_cache(maxsize=8_192)
def _marks(content: str) -> frozenset[str]:
    """The names and numbers in a fact, folded: words with a digit, words with a capital that begin no sentence, and in
    Chinese, Japanese or Korean every word in another script."""
    every = _IS_CJK.search(content) is not None
    return frozenset(
        fold(word[0])
        for word in _WORD.finditer(content)
        if every
        or (not word[0].isalpha() and any(map(str.isdigit, word[0])))
        or (word[0][0].isupper() and word.start() and not _SENTENCE_END.search(content, 0, word.start()))
    )


def _names_person(fact: Fact, text: str) -> bool:
    """Whether a folded text names the person that the fact is about."""
    person = fold(subject_of(fact)[0])
    return bool(person) and person in text


def _last_quoted(facts: Sequence[Fact], thread_id: str) -> Iterator[str]:
    """The last messages of the thread that facts quote."""
    quoted = dict.fromkeys(name for fact in reversed(facts) for name in _quoted(fact, thread_id))
    return iter(list(quoted)[:LAST_TURNS])


def _quoted(fact: Fact, thread_id: str) -> list[str]:
    """The messages of the thread that the fact quotes, by id or identity."""
    return [str(entry.get("message")) for entry in evidence_of(fact) if entry.get("thread") == thread_id]


def _newest(texts: Iterable[str]) -> str:
    """The end of these texts, which is compared."""
    return "\n".join(texts)[-CHARS:]
