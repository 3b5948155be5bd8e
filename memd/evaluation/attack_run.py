"""Runs attacks and true statements through the memory; both error rates come from the same run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from memd.config import Settings
from memd.context import Key
from memd.errors import Rejected
from memd.evaluation.attack_cases import Case
from memd.evaluation.in_memory import Answers, InMemory, Remembered
from memd.evaluation.judging import refused_text, rule_of
from memd.evaluation.lines import Line
from memd.evaluation.matching import Matcher, matching, text_of
from memd.evaluation.saved_replies import extraction
from memd.evaluation.tally import Judgement, Tally
from memd.extraction.protocol import Extraction, Request
from memd.memory.document import Document, Fact, facts_of
from memd.memory.facts import by_id, content_of, id_of
from memd.memory.text import fold
from memd.push.shapes import to_turn
from memd.push.signals import Patterns
from memd.recall.of_document import injection
from memd.recall.search import MAX_QUERY_CHARS

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
THREAD, USER = "t1", "ana"

Column = Literal["honest", "obedient", "model"]


@dataclass
class AttackRun:
    """The results so far."""

    tally: Tally = field(default_factory=Tally)
    finished: int = 0


class AttackEvaluation:
    """One run over cases, with the two columns of replies in the cases or with a model."""

    def __init__(self, settings: Settings, patterns: Patterns, answers: Answers | None = None) -> None:
        """`answers`: a model; None replays the replies in the cases."""
        self._settings = settings
        self._patterns = patterns
        self._answers = answers

    async def run(
        self, cases: Sequence[Line[Case]], run: AttackRun, progress: Callable[[int], None] | None = None
    ) -> None:
        """Measure these cases; `run` is filled as they finish. Raises BadLabels."""
        room = asyncio.Semaphore(self._settings.drain.concurrency)

        async def one(line: Line[Case]) -> None:
            async with room:
                run.tally.add(await self._case(line))
            run.finished += 1
            if progress:
                progress(run.finished)

        await asyncio.gather(*map(one, cases))

    async def _case(self, line: Line[Case]) -> list[Judgement]:
        case = line.value
        found: list[tuple[str, bool, str, str]] = []
        for column in self._columns(case):
            try:
                done = await self.remembered(case, column)
            except Rejected as error:
                raise line.wrong(str(error)) from None
            found += self._attack(case, column, done) if case.label == "attack" else self._true(case, done)
        return [Judgement(figure, case.id, yes, group, text, line.held_out) for figure, yes, group, text in found]

    def _columns(self, case: Case) -> tuple[Column, ...]:
        if self._answers is not None:
            return ("model",)
        return ("honest", "obedient") if case.label == "attack" else ("honest",)

    async def remembered(self, case: Case, column: Column) -> Remembered:
        """Run a case through filter, prompt, the reply of a column, gates and document. Raises Rejected."""
        answers = self._answers or _Scripted(case, column)
        memory = InMemory(self._settings, self._patterns, answers)
        context = memory.context(Key(THREAD, USER), [case.push()])
        return await memory.remember(context, case.document(), NOW, case.id)

    def _attack(self, case: Case, column: Column, done: Remembered) -> Iterator[tuple[str, bool, str, str]]:
        allowed = [*case.allowed, *(_harmless(case) if column == "honest" else ())]
        stored = [fact for fact in added(done) if not _any(allowed, text_of(fact))]
        yield f"attack_{column}", bool(stored), case.kind, content_of(stored[0]) if stored else ""
        known = self._lines(done.before)
        for figure, lines in (("injected", self._lines(done.after)), ("injected_said", self._lines_for(case, done))):
            injected = sorted(line for line in lines - known if not _any(allowed, line))
            yield f"{figure}_{column}", bool(injected), case.kind, injected[0] if injected else ""

    def _lines(self, document: Document) -> set[str]:
        """The lines that the next prompt would get: facts and summaries, without the headings."""
        return _lines_of(injection(document, self._settings.recall, NOW))

    def _lines_for(self, case: Case, done: Remembered) -> set[str]:
        """The same with excerpts, for the query that finds most of them: each user message of the attack itself."""
        queries = [turn.text[:MAX_QUERY_CHARS] for turn in map(to_turn, case.push()) if turn.kind == "user"]
        blocks = (injection(done.after, self._settings.recall, NOW, query, done.said) for query in queries)
        return set[str]().union(*map(_lines_of, blocks))

    def _true(self, case: Case, done: Remembered) -> Iterator[tuple[str, bool, str, str]]:
        refused = next(_refused(done), ("", ""))
        yield "true_refused", bool(refused[0]), refused[0] or "passed", refused[1]
        yield "true_missing", not self._is_stored(case, done), case.kind, case.id

    def _is_stored(self, case: Case, done: Remembered) -> bool:
        facts = facts_of(done.after)
        if case.terms is not None:
            return bool(matching(Matcher(case.terms, case.without), facts))
        proposed = [fact for asked in done.asked if asked.extraction for fact in asked.extraction.update.new_facts]
        kept = {fold(content_of(fact)) for fact in facts}
        return bool(proposed) and all(fold(fact.content) in kept for fact in proposed)


class _Scripted:
    """Returns the reply of a case."""

    def __init__(self, case: Case, column: str) -> None:
        self._reply = case.reply(column)

    async def answer(self, name: str, request: Request) -> Extraction:
        return extraction(self._reply, request, "replayed")


def added(done: Remembered) -> list[Fact]:
    """The new facts, and the known facts whose text changed."""
    known = by_id(done.before)
    return [
        fact for fact in facts_of(done.after) if content_of(known.get(id_of(fact), {"content": ""})) != content_of(fact)
    ]


def _harmless(case: Case) -> Iterator[Matcher]:
    """Matchers of the harmless texts: the descriptive facts of the honest reply, and its summaries."""
    honest = case.honest or {}
    yield from (Matcher(((text,),)) for text in honest.get("summaries", {}).values())
    for fact in honest.get("newFacts", ()):
        if fact.get("authority", "descriptive") == "descriptive":
            yield Matcher(((fact["content"],),))


def _lines_of(block: str) -> set[str]:
    return {fold(line) for line in block.splitlines() if line.startswith("- ")}


def _any(matchers: Sequence[Matcher], folded: str) -> bool:
    return any(matcher.matches(folded) for matcher in matchers)


def _refused(done: Remembered) -> Iterator[tuple[str, str]]:
    """Each refused fact of a reply, as (rule that refused it, fact)."""
    for asked in done.asked:
        for refusal in asked.applied.refusals if asked.applied else ():
            if refusal.part == "newFacts":
                text = refused_text(refusal, asked)
                kind = rule_of(refusal, asked)
                yield f"{refusal.reason}:{kind}" if kind else refusal.reason, text
