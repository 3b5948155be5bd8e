"""Unlearning: the facts that a user asks to forget leave the document at once, with every copy of them.

Which facts these are the model says, with a quote of the wish; and the messages say it themselves: facts that hold
what a wish names, and facts that nothing proves but turns that a wish points back to. An update removes at most MOST;
the others are suspended, and so are facts that a person wrote, that the model names with what may be no wish, or that
are only next to what a wish names. A wish to forget everything suspends all facts: a sentence can be misread, and a
whole memory does not come back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from memd.context import Message
from memd.extraction.update import ForgottenFact
from memd.memory import doubtful, refused, scoped, suspended, taking_out
from memd.memory.document import Document, Fact, archive_of, facts_of
from memd.memory.draft import Applied, Draft, Refusal
from memd.memory.evidence import UserMessages
from memd.memory.facts import (
    SCOPED,
    Evidence,
    content_of,
    evidence_of,
    id_of,
    is_manual,
    proven_by,
    source_of,
    without_proofs,
)
from memd.memory.new_facts import Origin
from memd.memory.purge import Words, purge, purge_of, without_sentences, without_told
from memd.memory.said.matter import Matter, matters_in
from memd.memory.said.named_wish import asks_to_forget, may_ask_to_forget, speaks_of_erasing
from memd.memory.said.removal import remove_turns
from memd.memory.said.taking import sentences_in
from memd.memory.said.turns import NOTHING_SAID
from memd.memory.said.wishes import behind_wishes, says_more_than_a_wish, stands_in, tells_of_a_wish, wish_of, wishes_in
from memd.memory.to_forget import NO_WISH, ToForget

MOST = 3
"""Facts that one update may remove because the user asks for it; a model may err, and nothing brings them back."""


NO_INDEX = -1
"""The index of a refusal of what the messages ask for by themselves: it is no item of the update."""


class Wishes:
    """The wishes in the messages of an update, what may not be made of them, and what is said again after them.

    `named`: the facts that the extractor takes a wish to mean.
    """

    def __init__(
        self, origin: Origin, sent: Sequence[Message], messages: UserMessages, named: Sequence[ForgottenFact] = ()
    ) -> None:
        self._messages = messages
        self._own = {m.identity: m.content for m in sent if m.role == "user" and m.name is None}
        found = self._own if origin.asked is not NO_WISH else {}
        self._told = {identity: text for identity, text in found.items() if wish_of(text)}
        self._again: dict[str, list[Evidence]] = defaultdict(list)
        """By the id of a fact what proves it in these messages."""
        unread = origin.asked.unread
        self._unread = UserMessages(origin.thread_id, unread, {message.identity for message in unread})
        self._behind = {
            identity: behind_wishes(text) for identity, text in self._own.items() if identity in origin.asked.asking
        }
        """Of the messages that only ask to forget what they say: what they say afterwards."""
        self.quoted = frozenset(identity for item in named for identity in self._asking(item.quote))
        """The identities of the messages that ask to forget what the extractor names."""

        self._any = bool(self._told or unread or origin.asked or self.quoted)

    def __bool__(self) -> bool:
        """Whether the user asks to forget anything, or not to keep it."""
        return self._any

    def why_not(self, quotes: Sequence[str]) -> str:
        """Why quotes prove nothing; `asked_not_to` for what the user said off the record."""
        return "asked_not_to" if any(map(self._unread.hold, quotes)) else self._messages.why_not(quotes)

    def without_them(self, sent: Sequence[Message]) -> list[Message]:
        """The messages; those that ask to forget what they say only with what stands behind the wish."""
        return [
            structs.replace(one, content=self._behind[one.identity]) if one.identity in self._behind else one
            for one in sent
        ]

    @property
    def _asked_texts(self) -> list[str]:
        """What the messages that ask to forget what they say tell, up to the end of the wish."""
        return [self._own[name].removesuffix(behind) for name, behind in self._behind.items()]

    def cut(self, summary: str) -> str:
        """A summary without the sentences that tell what a message says which it asks to forget."""
        parts = (part for text in self._asked_texts for part in sentences_in(text))
        told = [matter for part in parts for matter in matters_in(part, whole=True)]
        return without_sentences(summary, _Told(told, " ".join(self._asked_texts))) if told else summary

    def refuses(self, content: str, evidence: Sequence[Evidence]) -> bool:
        """Whether a fact is only a wish: each of its quotes stands in one, or its sentence tells of one."""
        wishes = [(entry, told) for entry in evidence if (told := self._of(entry)) is not None]
        if tells_of_a_wish(content) and (wishes or self._quote_wishes(evidence)):
            return True
        if not wishes:
            return bool(evidence) and all(self._quote_wishes([entry]) for entry in evidence)
        return len(wishes) == len(evidence) and not any(
            says_more_than_a_wish(entry["quote"], told) for entry, told in wishes
        )

    def refusal(self, quote: str) -> str | None:
        """Why a quote is not of a wish; None when it is."""
        if not self._messages.hold(quote):
            return self.why_not([quote])
        return None if any(self._asking(quote)) or self._may_ask(quote) else "no_wish"

    def are_own(self, quote: str) -> bool:
        """Whether the user said these words, nobody else who speaks in the thread."""
        return any(name in self._own for name in self._messages.identities(self._messages.quote(quote)))

    def is_clear(self, quote: str) -> bool:
        """Whether a quote asks to forget something for certain."""
        return any(self._asking(quote))

    def prove(self, fact_id: str, evidence: Sequence[Evidence]) -> None:
        """Note what the user said that proves a known fact again."""
        if self._told:
            self._again[fact_id] += evidence

    def are_followed_by(self, fact: Fact) -> bool:
        """Whether the user says a fact again after every wish that could mean it: then no wish does."""
        return any(self._is_last(entry, content_of(fact)) for entry in self._again.get(id_of(fact), ()))

    def _is_last(self, entry: Evidence, content: str) -> bool:
        """Whether a quote stands behind the sentence of each wish that names what this fact holds."""
        order = list(self._own)
        said = max((order.index(name) for name in self._messages.identities([entry]) if name in self._own), default=-1)
        for name, text in self._told.items():
            for rest, matters in wishes_in(text) if order.index(name) >= said else ():
                is_meant = not matters or any(matter.held_by(content) for matter in matters)
                if is_meant and not (order.index(name) == said and stands_in(entry["quote"], rest)):
                    return False
        return said >= 0

    def _asking(self, quote: str) -> Iterator[str]:
        """The identities of the user's messages in which a quote asks to forget something."""
        for entry in self._messages.quote(quote):
            names = (name for name in self._messages.identities([entry]) if name in self._own)
            yield from (name for name in names if asks_to_forget(entry["quote"], self._own[name]))

    def _may_ask(self, quote: str) -> bool:
        entries = self._messages.quote(quote)
        places = ((entry, name) for entry in entries for name in self._messages.identities([entry]))
        return any(name in self._own and may_ask_to_forget(entry["quote"], self._own[name]) for entry, name in places)

    def _quote_wishes(self, evidence: Sequence[Evidence]) -> bool:
        """Whether any of these quotes is by itself a wish to forget what the extractor names."""
        named = (entry for entry in evidence if not self.quoted.isdisjoint(self._messages.identities([entry])))
        return any(asks_to_forget(entry["quote"], entry["quote"]) for entry in named)

    def _of(self, entry: Evidence) -> str | None:
        return next((self._told[name] for name in self._messages.identities([entry]) if name in self._told), None)


def fulfil(
    applied: Applied, draft: Draft, named: Sequence[ForgottenFact], wishes: Wishes, known: AbstractSet[str]
) -> Applied:
    """The result of an update without the facts that its messages ask to forget.

    `named`: those of the extractor; `known`: the ids of the facts that it was shown.
    """
    asked = draft.origin.asked
    if asked.everything or _names_all(named, wishes, known):
        return _all_suspended(applied, draft, wishes)
    if not named and not asked:
        return applied
    refusals: list[Refusal] = []
    asking = list(_named(applied, named, wishes, known, refusals))
    clear = [item.id for item in asking if wishes.is_clear(item.quote)]
    found = _found(applied, asked, wishes)
    meant = dict.fromkeys([*clear, *found.meant])
    ids = dict.fromkeys([*meant, *(item.id for item in asking), *found.guessed])
    facts = _by_id(applied.document)
    granted = [fact_id for fact_id in meant if fact_id not in facts or not is_manual(facts[fact_id])][:MOST]
    left, dead = _taken_out(applied.document, [*granted, *found.archived])
    facts = _by_id(left)
    waiting = [_waiting(facts[each], meant, draft.now) for each in ids if each in facts and each not in granted]
    held = [fact for fact in suspended.facts_of(left) if fact.get(suspended.WHY) != suspended.ALL]
    room = max(0, suspended.MAX_SUSPENDED - len(held))
    refusals += [Refusal("too_many_forgotten", "forgottenFacts", NO_INDEX) for _ in waiting[room:]]
    left = _buried(left, dead, draft.now)
    unkept = tuple(sorted(wishes.quoted)) if clear else ()
    applied = replace(applied, refusals=(*applied.refusals, *refusals), forgotten=dead, unkept=unkept)
    return _with_suspended(applied, left, waiting[:room], draft)


def _all_suspended(applied: Applied, draft: Draft, wishes: Wishes) -> Applied:
    """The result of an update whose messages ask to forget all that is known: what is new since stays, nothing else."""
    facts = (fact for name, fact in _by_id(applied.document).items() if name not in applied.added)
    waiting = [
        suspended.suspended(fact, suspended.ALL, draft.now) for fact in facts if not wishes.are_followed_by(fact)
    ]
    held = suspended.facts_of(applied.document)
    oldest = [id_of(fact) for fact in held[: max(0, len(held) + len(waiting) - suspended.MAX_OF_ALL)]]
    left, dead = _taken_out(applied.document, oldest)
    left = _buried(left, dead, draft.now)
    left = without_told(left, _All(), draft.now)
    applied = replace(applied, unkept=tuple(sorted(wishes.quoted)), everything=True, forgotten=dead)
    return _with_suspended(applied, left, waiting, draft)


def _with_suspended(applied: Applied, left: Document, waiting: Sequence[Fact], draft: Draft) -> Applied:
    """The result with these facts suspended, of a document that is left without what has to go."""
    held, names = suspended.facts_of(left), {id_of(fact) for fact in waiting}
    if names:
        left = {**left, "facts": [fact for fact in facts_of(left) if id_of(fact) not in names]}
        left = scoped.with_facts(left, [fact for fact in scoped.facts_of(left) if id_of(fact) not in names])
    left = _without(purge(left, waiting, draft.now), draft.origin.asked, draft)
    alive, unsure = _by_id(left).keys(), set(map(id_of, doubtful.facts_of(left)))
    return replace(
        applied,
        document=suspended.with_facts(left, [*held, *waiting]),
        added=tuple(fact_id for fact_id in applied.added if fact_id in alive),
        confirmed=tuple(fact_id for fact_id in applied.confirmed if fact_id in alive),
        hidden=tuple(dict.fromkeys([*applied.hidden, *(name for fact in waiting for name in proven_by(fact))])),
        suspended=tuple(id_of(fact) for fact in waiting),
        doubtful=tuple(fact_id for fact_id in applied.doubtful if fact_id in unsure),
    )


def _by_id(document: Document) -> dict[str, Fact]:
    """All facts by their ids, those of conversations and projects too."""
    return {id_of(fact): fact for fact in scoped.all_facts(document)}


def _names_all(named: Sequence[ForgottenFact], wishes: Wishes, known: AbstractSet[str]) -> bool:
    """Whether the extractor names every fact, each with words of the user, and some of these speak of erasing."""
    own = [item for item in named if wishes.are_own(item.quote)]
    if len(known) <= MOST or not known <= {item.id for item in own}:
        return False
    return any(speaks_of_erasing(item.quote) for item in own)


def _named(
    applied: Applied,
    named: Sequence[ForgottenFact],
    wishes: Wishes,
    known: Collection[str],
    refusals: list[Refusal],
) -> Iterator[ForgottenFact]:
    """What the extractor names with a quote of a wish, or of what may be one; the others are refused."""
    for index, item in enumerate(named):
        reason = wishes.refusal(item.quote)
        if item.id not in known or item.id in applied.added:
            reason = "unknown_id"
        if reason:
            refusals.append(Refusal(reason, "forgottenFacts", index))
        else:
            yield item


class _Found(NamedTuple):
    """The ids of the facts that the messages ask to forget by themselves, those that hold what a wish names first.

    None that are new, and none that the user says again after the wish. `guessed`: those that only share most of it;
    `archived`: facts that are over or doubtful.
    """

    meant: list[str]
    guessed: list[str]
    archived: list[str]


def _found(applied: Applied, asked: ToForget, wishes: Wishes) -> _Found:
    document, new = applied.document, frozenset(applied.added)
    facts, apart = scoped.all_facts(document), [*archive_of(document), *doubtful.facts_of(document)]

    def free(found: Iterable[Fact]) -> list[str]:
        old = (fact for fact in found if id_of(fact) not in new)
        return [id_of(fact) for fact in old if not wishes.are_followed_by(fact)]

    active = {"", *map(id_of, facts)}
    archived = [name for fact in asked.meant(apart, facts) if (name := id_of(fact)) not in active]
    return _Found(free(asked.meant(facts, apart)), free(asked.guessed(facts, apart)), archived)


def _taken_out(document: Document, ids: Sequence[str]) -> tuple[Document, tuple[Fact, ...]]:
    """The document without these facts, and without archived ones that say the same in other words."""
    left, dead, _ = taking_out.take_out(document, ids)
    if not dead:
        return left, dead
    words, active = Words(dead, facts_of(left)), _by_id(left).keys()
    same = [id_of(entry) for entry in archive_of(left) if id_of(entry) not in active and words.in_(content_of(entry))]
    left, more, _ = taking_out.take_out(left, same)
    return left, (*dead, *more)


def _buried(document: Document, dead: Sequence[Fact], now: str) -> Document:
    """The document with tombstones of these facts; the same where there are none."""
    return taking_out.buried(document, dead, now, remove_turns(NOTHING_SAID, dead).hashes) if dead else document


def _waiting(fact: Fact, meant: Collection[str], now: str) -> Fact:
    """`meant`: the ids of the facts that a clear wish means."""
    unclear: suspended.Why = "too_many_forgotten" if id_of(fact) in meant else "unclear_wish"
    return suspended.suspended(fact, "manual" if is_manual(fact) else unclear, now)


def _without(document: Document, asked: ToForget, draft: Draft) -> Document:
    """The document without the quotes of messages that go, and without other texts that hold what a wish names."""
    if gone := asked.pointed - asked.asking:  # what stands behind a wish is no part of it
        lists = {"facts": facts_of(document), "archive": archive_of(document), SCOPED: scoped.facts_of(document)}
        proven = {name: [without_proofs(fact, gone) for fact in facts] for name, facts in lists.items() if facts}
        document = {**document, **proven}
    if asked and (kept := refused.facts_of(document)):
        source = draft.origin.source
        stays = [fact for fact in kept if not asked.means(fact) and not _may_come_from(fact, asked.gone, source)]
        document = refused.with_facts(document, stays)
    return purge_of(document, _Named(asked.matters), draft.now) if asked.matters else document


def _may_come_from(fact: Fact, gone: frozenset[str], source: str) -> bool:
    """Whether a refused fact quotes any of these messages; one without a true quote may come from any of its thread."""
    if any("message" in entry for entry in evidence_of(fact)):
        return without_proofs(fact, gone) is not fact
    return bool(gone) and source_of(fact) == source


class _All:
    """Any text at all."""

    def in_(self, _sentence: str) -> bool:
        return True

    in_sentence = in_quote = in_


class _Named:
    """What wishes name, as a test of texts."""

    def __init__(self, matters: Sequence[Matter]) -> None:
        self._matters = matters

    def in_(self, sentence: str) -> bool:
        return any(matter.held_by(sentence) for matter in self._matters)

    in_sentence = in_quote = in_


class _Told(_Named):
    """The same for sentences of which most words stand in a text, too: a short sentence tells of a long one."""

    def __init__(self, matters: Sequence[Matter], text: str) -> None:
        super().__init__(matters)
        self._text = text

    def in_(self, sentence: str) -> bool:
        return super().in_(sentence) or any(one.held_by(self._text) for one in matters_in(sentence, whole=True))

    in_sentence = in_quote = in_
