"""The offline extractor: plain statements in English and Chinese, by patterns, without a model.

It understands what a user says about themselves in one plain clause: name, home, job and employer, origin, family and
pets by name, tastes and preferences, allergies and diet, tools, languages, how answers should be, what is being learnt,
planned or decided, that something is over, and corrections of these. Each fact quotes its sentence.

It never guesses, and so it misses most of what a model would find. It cannot: read between the lines; follow "it",
"there" or "she" to what they mean; join sentences; tell irony; know whether "I'm Kim" is a name; turn "next week"
into a date; judge what matters; write summaries; or read other languages. Questions, conditions, doubts, reported
speech, quotations, code, and messages that ask to work on a text are left alone, even where they hold a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from memd.extraction.offline import chinese, english
from memd.extraction.offline.rules_en import RULES as ENGLISH_RULES
from memd.extraction.offline.rules_zh import RULES as CHINESE_RULES
from memd.extraction.offline.statements import Found, sentences
from memd.extraction.protocol import Extraction, Request, Usage
from memd.extraction.update import ConfirmedFact, Evidence, NewFact, RetiredFact, Subject, Update

RULES_VERSION = "rules-1"

CONFIDENCE = 0.9
CONFIDENCE_OF_CORRECTION = 0.95


class RulesExtractor:
    """Extraction by patterns: offline, free, the same answer to the same question. See the module for its limits."""

    name = "rules"

    async def extract(self, request: Request) -> Extraction:
        """Read the user's messages. Raises nothing: what is not plain is simply not found."""
        draft = _Draft(request.document)
        for index, message in enumerate(request.messages):
            if message.role == "user":
                for found, quote in read(message.content):
                    draft.take(found, Evidence(index, quote))
        return Extraction(draft.update(), Usage(), self.name, RULES_VERSION)

    async def aclose(self) -> None:
        """Nothing to let go of."""


def read(text: str) -> Iterator[tuple[Found, str]]:
    """The plain statements of one message, each with the sentence it stands in."""
    corrects = False
    for sentence, quote in sentences(text):
        language = chinese if chinese.HAN.search(sentence) else english
        for found in language.read(sentence, corrects=corrects):
            yield found, quote
        corrects = language.is_bare_no(sentence)


class _Held(NamedTuple):
    """A fact of the document, in as far as its wording is one of ours."""

    id: str
    content: str
    kind: str
    value: str
    template: tuple[str, str]


_Wording = tuple[str, str, Callable[[str], bool] | None]
"""The kind, the text after the value, and the judge of values, of one template."""


def _wordings() -> dict[str, list[_Wording]]:
    """All wordings by the text before their value."""
    result: dict[str, list[_Wording]] = {}
    for rule in (*ENGLISH_RULES, *CHINESE_RULES):
        before, slot, after = rule.template.partition("{0}")
        if slot and not rule.kin:
            result.setdefault(before, []).append((rule.kind, after, rule.accept))
    for wordings in result.values():
        wordings.sort(key=lambda wording: -len(wording[1]))
    return result


_WORDINGS = _wordings()
_BEGINNINGS = {
    kind: tuple(before for before, wordings in _WORDINGS.items() if any(wording[0] == kind for wording in wordings))
    for kind in {wording[0] for wordings in _WORDINGS.values() for wording in wordings}
}
"""For each kind, how the wordings of its facts begin."""

_STEM = 12


def _stems() -> dict[str, list[int]]:
    """How wordings begin, cut to `_STEM` characters, and how long the texts before the value are; the longest first."""
    result: dict[str, list[int]] = {}
    for before in sorted(_WORDINGS, key=len, reverse=True):
        lengths = result.setdefault(before[:_STEM], [])
        if len(before) not in lengths:
            lengths.append(len(before))
    return result


_STEMS = _stems()
_STEM_LENGTHS = sorted(set(map(len, _STEMS)), reverse=True)


def recognised(fact_id: str, content: str) -> _Held:
    """The kind and value of a fact that one of our rules could have worded; of another, an empty kind."""
    for stem in _STEM_LENGTHS:
        # The longest first: "The user is from {0}." is not "The user is {0}." of something else.
        for length in _STEMS.get(content[:stem], ()):
            before = content[:length]
            for kind, after, accept in _WORDINGS.get(before, ()):
                value = content[length : len(content) - len(after)].strip()
                if content.endswith(after) and value and (accept is None or accept(value)):
                    return _Held(fact_id, content, kind, value.casefold(), (before, after))
    return _Held(fact_id, content, "", "", ("", ""))


@dataclass
class _Draft:
    """The update while it grows. A later statement of the same messages overrules an earlier one."""

    document: dict[str, Any]
    new: dict[str, NewFact] = field(default_factory=dict)
    confirmed: dict[str, ConfirmedFact] = field(default_factory=dict)
    retired: dict[str, RetiredFact] = field(default_factory=dict)

    @cached_property
    def _facts(self) -> list[tuple[str, str, str]]:
        """Id, content and folded content of the document's facts, looked at only when something was found."""
        facts = self.document.get("facts") or ()
        return [
            (fact["id"], fact["content"], fact["content"].strip().casefold())
            for fact in facts
            if isinstance(fact, dict) and isinstance(fact.get("id"), str) and isinstance(fact.get("content"), str)
        ]

    def _held(self, kind: str) -> list[_Held]:
        """The facts of a kind."""
        begins = _BEGINNINGS.get(kind, ())
        held = [recognised(fact_id, text) for fact_id, text, _ in self._facts if begins and text.startswith(begins)]
        return [fact for fact in held if fact.kind == kind]

    def take(self, found: Found, evidence: Evidence) -> None:
        if found.kind == "over":
            self._retire(found, evidence)
        elif found.kind == "correction":
            self._correct(found, evidence)
        else:
            self._add(found, evidence)

    def update(self) -> Update:
        return Update({}, tuple(self.new.values()), tuple(self.confirmed.values()), tuple(self.retired.values()))

    def _add(self, found: Found, evidence: Evidence) -> None:
        slot = found.kind if found.single else f"{found.kind}\n{found.value.casefold()}"
        of_kind = [] if found.person else self._held(found.kind)
        self.new.pop(slot, None)
        if same := self._same(found, of_kind):
            self.confirmed[same] = ConfirmedFact(same, evidence.quote)
            return
        replaced = tuple(self._replaced(found, of_kind))
        for fact_id in replaced:
            self.confirmed.pop(fact_id, None)
            self.retired.pop(fact_id, None)
        self.new[slot] = _fact(found, evidence, replaced)

    def _same(self, found: Found, of_kind: list[_Held]) -> str | None:
        """The first fact that says the same, in other case or, of a single kind, in another wording."""
        wanted, value = found.content.strip().casefold(), found.value.casefold()
        worded = {fact.id for fact in of_kind if found.single and fact.value == value}
        return next((fact_id for fact_id, _, folded in self._facts if folded == wanted or fact_id in worded), None)

    def _replaced(self, found: Found, of_kind: list[_Held]) -> Iterator[str]:
        """Of a single kind any other value; of the rest the same value said otherwise (likes, no longer likes)."""
        if found.person:
            begins = found.content.rpartition(found.person)[0]
            yield from (fact_id for fact_id, text, _ in self._facts if found.corrects and text.startswith(begins))
        else:
            yield from (fact.id for fact in of_kind if found.single or fact.value == found.value.casefold())

    def _retire(self, found: Found, evidence: Evidence) -> None:
        for fact in self._held(found.content):
            if fact.value == found.value.casefold():
                self.confirmed.pop(fact.id, None)
                self.retired[fact.id] = RetiredFact(fact.id, "over", evidence.quote)

    def _correct(self, found: Found, evidence: Evidence) -> None:
        """Put the right value in the place of the wrong one, where that one stands; else note what was meant."""
        wrong = found.wrong.casefold()
        for slot, fact in reversed(list(self.new.items())):
            if wrong and recognised("", fact.content).value == wrong:
                self._substitute(slot, recognised("", fact.content), found, evidence, fact.replaces)
                return
        for fact_id, text, _ in self._facts if wrong else ():
            held = recognised(fact_id, text)
            if held.value == wrong:
                slot = held.kind if held.kind in _SINGLE else f"{held.kind}\n{found.value.casefold()}"
                self.confirmed.pop(held.id, None)
                self._substitute(slot, held, found, evidence, (held.id,))
                return
        if found.content:
            self.new[f"correction\n{found.value.casefold()}"] = _fact(found, evidence)

    def _substitute(self, slot: str, held: _Held, found: Found, evidence: Evidence, replaces: tuple[str, ...]) -> None:
        before, after = held.template
        right = replace(found, content=f"{before}{found.value}{after}", category=_CATEGORIES[held.kind])
        self.new[slot] = _fact(right, evidence, replaces)


def _fact(found: Found, evidence: Evidence, replaces: tuple[str, ...] = ()) -> NewFact:
    return NewFact(
        content=found.content,
        category=found.category,
        confidence=CONFIDENCE_OF_CORRECTION if found.corrects else CONFIDENCE,
        scope="user",
        durability="durable",
        authority="descriptive",
        evidence=(evidence,),
        source_error=found.wrong or None,
        subject=Subject(found.person, found.relationship) if found.person else None,
        replaces=replaces,
    )


_CATEGORIES = {rule.kind: rule.category for rule in (*ENGLISH_RULES, *CHINESE_RULES)}
_SINGLE = {rule.kind for rule in (*ENGLISH_RULES, *CHINESE_RULES) if rule.single}
