"""Outdated: sentences of summaries that tell of today what an update has ended, where the update left them alone.

So do asides of facts, and reasons: "updates on Wednesdays, because of the weekends in Zhuhai" outlives its reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from memd.memory.document import Fact
from memd.memory.draft import Draft
from memd.memory.duplicates import IS_CJK, tokens
from memd.memory.facts import content_of, id_of, is_manual
from memd.memory.gates.said_names import places_in
from memd.memory.purge import Words, names_in, without_sentences
from memd.memory.sayings import earlier, end_of, latest, of_fact, of_summary
from memd.memory.telling import telling
from memd.memory.text import fold

_CLAUSE = re.compile(r".+?(?:[,;:.!?](?=\s|$)|[，；。！？]|$)\s*")
OF_TODAY = ("workContext", "personalContext", "topOfMind")
"""The summaries that tell how things are; in the others what is over has its place."""


def cut_outdated(draft: Draft) -> None:
    """Cut the sentences that hold a name or a number of a fact that this update ended, and that no fact has now."""
    ended = [entry for entry in draft.archived if id_of(entry) in draft.known and draft.is_retired(id_of(entry))]
    if not ended:
        return
    for name in OF_TODAY:
        text, written = draft.summary(name), of_summary(draft.old, name)
        over = [entry for entry in ended if not earlier(end_of(entry), written)]
        if text and over and (kept := without_sentences(text, _Ended(over, list(draft.facts.values())))) != text:
            draft.rewrite(name, kept, written)
    names = frozenset[str]().union(*map(names_of, map(content_of, ended)))
    bare = {fact_id: telling().reasons.sub("", content_of(fact)) for fact_id, fact in draft.facts.items()}
    told = fold("\n".join(bare.values()))
    if gone := {name for name in names if name not in told}:
        said = latest(map(end_of, ended))
        for fact_id in draft.known & draft.facts.keys():
            if not earlier(said, of_fact(draft.facts[fact_id])):
                _cut_asides(draft, fact_id, bare[fact_id], gone)


def _cut_asides(draft: Draft, fact_id: str, bare: str, gone: Collection[str]) -> None:
    """Cut the clauses of a fact's asides, and the reason in its sentence, that hold one of these names."""
    fact = draft.facts[fact_id]
    content = content_of(fact)
    if is_manual(fact):
        return
    for field in ("sourceError", "backstory"):
        clauses = _CLAUSE.findall(text) if isinstance(text := fact.get(field), str) else []
        kept = [clause for clause in clauses if names_of(clause).isdisjoint(gone)]
        if len(kept) < len(clauses):
            draft.change(fact_id, **{field: "".join(kept).strip(" ,;，；") or None})
    if bare != content and not names_of(content).isdisjoint(gone):
        draft.change(fact_id, content=bare)


def names_of(text: str) -> frozenset[str]:
    """The names and numbers of a text; in Chinese the known places."""
    return places_in(text).union(name for name in names_in(text) if not IS_CJK.match(name))


class _Ended(Words):
    """The content of ended facts, as a test of sentences."""

    def __init__(self, ended: Sequence[Fact], kept: Sequence[Fact]) -> None:
        super().__init__(ended, kept)
        known = frozenset[str]().union(*map(_telling, kept))
        self._gone = frozenset[str]().union(*map(_telling, ended)) - known

    def in_sentence(self, sentence: str) -> bool:
        """Whether it holds a name or a number that only an ended fact has, and is nearest to such a fact."""
        return not self._gone.isdisjoint(tokens(sentence)) and super().in_sentence(sentence)


def _telling(fact: Fact) -> frozenset[str]:
    """The names and numbers of a fact; in a script without capitals all its words."""
    content = content_of(fact)
    return names_in(content) | frozenset(token for token in tokens(content) if IS_CJK.match(token))
