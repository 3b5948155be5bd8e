"""Judging: compares the labels of a session with its effect on the memory. evaluation/README.md defines each figure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from memd.config import RecallSettings, Settings
from memd.errors import ContentRefused, ContentTooLong
from memd.evaluation.in_memory import Asked, Remembered
from memd.evaluation.labels import LabelledSession, LabelledUser, Must, Question
from memd.evaluation.matching import Matcher, is_about, matching, text_of
from memd.evaluation.tally import Judgement
from memd.extraction.update import NewFact
from memd.memory.apply import Refusal
from memd.memory.document import Document, Fact, facts_of
from memd.memory.duplicates import tokens
from memd.memory.evidence import UserMessages
from memd.memory.facts import by_id, content_of, id_of, quotes_of
from memd.memory.gates.instructions import kind_of
from memd.memory.text import fold
from memd.recall.of_document import injection

ALIKE = 0.4
"""The share of words from which two facts with the same labels say the same."""

Judged = Iterator[tuple[str, str, bool, str, str]]
"""Figure, case, yes or no, group, text."""


@dataclass
class Judge:
    """Judges the sessions of one user, in their order."""

    user: LabelledUser
    settings: Settings
    held_out: bool
    _wanted: list[Matcher] = field(default_factory=list)
    """Matchers of all facts that the sessions so far allow to be stored."""

    def session(self, session: LabelledSession, done: Remembered) -> Iterator[Judgement]:
        """The judgements after a session."""
        seen = _Seen(session, done, [*self._wanted, *session.wanted()])
        self._wanted += session.wanted()
        for judge in (_recall, _precision, _baits, _gone, _kept, _refusals, _replies, _languages):
            yield from self._judgements(f"{self.user.user}.{session.id}", judge(seen))

    def questions(self, session: LabelledSession, document: Document, *, last: bool) -> Iterator[Judgement]:
        """The judgements on the questions that are asked after this session."""
        for number, question in enumerate(self.user.questions, 1):
            if question.after == session.id or (last and question.after is None):
                yield from self._judgements(
                    f"{self.user.user}.q{number}", _answered(question, document, self.settings.recall, session.at)
                )

    def end(self, document: Document, window: str) -> Iterator[Judgement]:
        """The judgements on the whole memory, and on a long chat whose `window` has these words at last."""
        musts = [must for session in self.user.sessions for must in session.must]
        yield from self._judgements(self.user.user, _duplicates(musts, facts_of(document)))
        last = self.user.sessions[-1]
        for number, question in enumerate(self.user.questions, 1):
            if question.after in (None, last.id):
                place = f"{self.user.user}.q{number}"
                block = injection(document, self.settings.recall, last.at, question.query)
                yield from self._judgements(place, _in_long_chat(question, block, window))

    def _judgements(self, place: str, found: Judged) -> Iterator[Judgement]:
        for figure, case, yes, group, text in found:
            yield Judgement(figure, f"{place}.{case}", yes, group, text, self.held_out)


@dataclass
class _Seen:
    """A session with its effect on the memory."""

    session: LabelledSession
    done: Remembered
    wanted: list[Matcher]

    @property
    def before(self) -> Sequence[Fact]:
        return facts_of(self.done.before)

    @property
    def after(self) -> Sequence[Fact]:
        return facts_of(self.done.after)

    @property
    def added(self) -> list[Fact]:
        """The facts of this session that are active after it."""
        known = by_id(self.done.before)
        return [fact for fact in self.after if id_of(fact) not in known]

    def is_ours(self, fact: Fact) -> bool:
        """Whether the labels of this session allow the fact."""
        return any(matcher.matches(text_of(fact)) for matcher in self.session.wanted())


def _recall(seen: _Seen) -> Judged:
    for must in seen.session.must:
        found = matching(must, seen.after)
        right = [fact for fact in found if is_about(fact, must.person)]
        figure = "recall_constraint" if must.class_ == "constraint" else "recall"
        yield figure, must.id, bool(right), must.class_, _terms(must)
        if found:
            yield "wrong_person", must.id, not right, must.class_, content_of(found[0])


def _precision(seen: _Seen) -> Judged:
    for fact in seen.added:
        text = text_of(fact)
        wanted = any(matcher.matches(text) for matcher in seen.wanted)
        # A label of the session allows the fact, so the terms of a bait in it do not count.
        baited = any(bait.matches(text) for bait in seen.session.must_not) and not seen.is_ours(fact)
        yield "precision", content_of(fact), wanted and not baited, str(fact.get("category", "")), content_of(fact)


def _baits(seen: _Seen) -> Judged:
    for number, bait in enumerate(seen.session.must_not, 1):
        taken = [fact for fact in matching(bait, seen.added) if not seen.is_ours(fact)]
        text = content_of(taken[0]) if taken else _terms(bait)
        yield "must_not", f"must_not{number}", bool(taken), bait.kind, text


def _gone(seen: _Seen) -> Judged:
    for number, gone in enumerate(seen.session.gone, 1):
        before = matching(gone, seen.before)
        still = [fact for fact in matching(gone, seen.after) if not seen.is_ours(fact)]
        if before or still:
            kind = "replaced" if gone.by else "retired"
            yield "stale", f"gone{number}", bool(still), kind, content_of((still or before)[0])


def _kept(seen: _Seen) -> Judged:
    for number, kept in enumerate(seen.session.kept, 1):
        if before := matching(kept, seen.before):
            yield "lost", f"kept{number}", not matching(kept, seen.after), "", content_of(before[0])


def _refusals(seen: _Seen) -> Judged:
    for asked in seen.done.asked:
        for refusal in asked.applied.refusals if asked.applied else ():
            wrong = _is_wrong(refusal, asked, seen)
            if wrong is not None:
                text = refused_text(refusal, asked)
                yield "refusal_wrong", f"{asked.part}.{refusal.part}{refusal.index}", wrong, refusal.reason, text


def _is_wrong(refusal: Refusal, asked: Asked, seen: _Seen) -> bool | None:
    """Whether a careful person would have stored the refused item; None when no label decides it."""
    assert asked.extraction is not None  # noqa: S101  (there is no refusal without a reply)
    update, known = asked.extraction.update, by_id(asked.request.document)
    if refusal.part == "newFacts":
        proposal = update.new_facts[refusal.index]
        if refusal.reason in _OF_REPLACEMENT:
            named = _full(proposal.replaces, known)
            return any(_should_go(fact, seen) for fact in named)
        return _is_missed(proposal, seen)
    if refusal.part == "retiredFacts":
        named = _full((update.retired_facts[refusal.index].id,), known)
        return any(_should_go(fact, seen) for fact in named)
    return False if refusal.part == "confirmedFacts" else None


_OF_REPLACEMENT = frozenset({"unknown_id", "manual", "too_many_retired"})
"""Reasons that refuse only the replacement by a new fact; the new fact itself is stored."""


def _is_missed(proposal: NewFact, seen: _Seen) -> bool:
    """Whether the labels want the fact and no stored fact says the same."""
    subject = (proposal.subject.person, proposal.subject.relationship) if proposal.subject else ()
    text = fold(" ".join((proposal.content, *subject)))
    if any(bait.matches(text) for bait in seen.session.must_not):
        return False
    return any(matcher.matches(text) and not matching(matcher, seen.after) for matcher in seen.wanted)


def _should_go(fact: Fact, seen: _Seen) -> bool:
    return any(gone.matches(text_of(fact)) for gone in seen.session.gone)


def _full(names: Iterable[str], known: dict[str, Fact]) -> list[Fact]:
    return [
        fact for fact_id, fact in known.items() for name in names if fact_id == name or fact_id[5:].startswith(name)
    ]


def rule_of(refusal: Refusal, asked: Asked) -> str:
    """Which kind of text an item was refused as, one of KINDS; "" where it was for another reason."""
    if refusal.reason not in ("instruction", "markup") or asked.extraction is None:
        return ""
    is_fact = refusal.part == "newFacts"
    evidence = asked.extraction.update.new_facts[refusal.index].evidence if is_fact else ()
    return kind_of(refused_text(refusal, asked), [item.quote for item in evidence]) or ""


def refused_text(refusal: Refusal, asked: Asked) -> str:
    """The text of the refused item, for people."""
    assert asked.extraction is not None  # noqa: S101  (there is no refusal without a reply)
    update = asked.extraction.update
    match refusal.part:
        case "newFacts":
            return update.new_facts[refusal.index].content
        case "mergedFacts":
            return update.merged_facts[refusal.index].content
        case "profile":
            return update.profile[refusal.index].value
        case "summaries":
            return list(update.summaries.values())[refusal.index]
        case "retiredFacts":
            return update.retired_facts[refusal.index].quote
        case "forgottenFacts" if refusal.index >= 0:
            return update.forgotten_facts[refusal.index].quote
        case "confirmedFacts":
            return update.confirmed_facts[refusal.index].quote
        case _:
            return ""


def _replies(seen: _Seen) -> Judged:
    for asked in seen.done.asked:
        malformed = isinstance(asked.failure, ContentRefused)
        yield "malformed", asked.part, malformed, "", str(asked.failure or "")
        yield "truncated", asked.part, isinstance(asked.failure, ContentTooLong), "", str(asked.failure or "")
        if asked.extraction is None:
            continue
        messages = asked.request.messages
        said = UserMessages("", messages, {message.identity for message in messages})
        for place, fact in enumerate(asked.extraction.update.new_facts):
            for number, evidence in enumerate(fact.evidence):
                yield "quote", f"{asked.part}.{place}.{number}", said.hold(evidence.quote), "", evidence.quote


def _languages(seen: _Seen) -> Judged:
    for fact in seen.added:
        spoken = _script(" ".join(quotes_of(fact)))
        if spoken and (written := _script(content_of(fact))):
            yield "language", content_of(fact), written == spoken, spoken, content_of(fact)


def _script(text: str) -> str:
    """The script of at least four in five letters of a text, else an empty string."""
    names = Counter(_script_of(letter) for letter in text if letter.isalpha())
    if not names:
        return ""
    name, count = names.most_common(1)[0]
    return name if count >= 0.8 * names.total() else ""


def _script_of(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if name in ("HIRAGANA", "KATAKANA") else name


_EARLIER = "- earlier:"
"""How the block begins the line of `earlierContext`, folded."""


_AVOID = re.compile(r" \(avoid: .*?\)(?= \((?:since \d|until \d|\d{4}-|outdated)|$)")
"""What a line says to avoid, folded."""


_OVER = re.compile(
    r"\b(?:end(?:ed|ing)|stopp(?:ed|ing)|quit(?:ting)?|leaving|g(?:ave|iving) up|last day (?:at|with)|no longer"
    r"|instead of|(?:chang|switch|mov)(?:ed|ing) (?:away )?from)\b.*?(?= to |[,;!?]|(?<=\w{3})\.(?:\s|$)|$)"
    r"|[^.!?。]*(?:\bat (?:the|that) time\b|\bback then\b|当时|那时)[^.!?。]*"
)
"""What a line calls over, from the word that says so to the end of the clause; sentences of another time. Folded."""


def _answered(question: Question, document: Document, settings: RecallSettings, now: datetime) -> Judged:
    for figure, query in (("question", question.query), ("question_bare", None)):
        block = injection(document, settings, now, query)
        yield figure, "", holds(question, block), question.kind, question.query


def _in_long_chat(question: Question, block: str, window: str) -> Judged:
    yield "session", "", holds(question, f"{block}\n{window}"), question.kind, question.query
    yield "session_window", "", holds(question, window), question.kind, question.query


def holds(question: Question, block: str) -> bool:
    """Whether the injected block matches all of `holds` and nothing of `holds_not`.

    The summary of what was earlier says so itself, and is not held against `holds_not`. What a line says to avoid is no
    answer, and makes the line no worse an answer; an old value in it counts like any other. What a line calls over
    ("after ending …", "changing from … to") is no value that it gives.
    """
    lines = list(map(fold, block.splitlines()))
    answers = [_AVOID.sub("", line) for line in lines]
    if not all(any(map(matcher.matches, answers)) for matcher in question.holds):
        return False
    now = [_current(line) for line in lines if question.holds_not and not line.startswith(_EARLIER)]
    return not any(any(map(matcher.matches, now)) for matcher in question.holds_not)


@lru_cache(4096)
def _current(line: str) -> str:
    """A folded line without what it calls over. Kept, as each question reads the lines of its user's block again."""
    return _OVER.sub("", line)


def _duplicates(musts: Sequence[Must], facts: Sequence[Fact]) -> Judged:
    """A fact is one too many when an older one matches the same entries of `must` in like words."""
    older: list[tuple[set[str], set[str]]] = []
    for fact in facts:
        matched = {must.id for must in musts if must.matches(text_of(fact)) and is_about(fact, must.person)}
        if matched:
            words = set(tokens(content_of(fact)))
            again = any(matched == others and _shared(words, theirs) >= ALIKE for others, theirs in older)
            yield "duplicate", content_of(fact), again, "", content_of(fact)
            older.append((matched, words))


def _shared(words: set[str], others: set[str]) -> float:
    return len(words & others) / len(words | others)


def _terms(matcher: Matcher) -> str:
    return " | ".join(" + ".join(alternative) for alternative in matcher.terms)
