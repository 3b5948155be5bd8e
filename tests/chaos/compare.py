"""The comparison of the documents with the acknowledged contexts, fact by fact."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from chaos import load
from chaos.load import Turn
from chaos.plan import Plan
from memd.context import Bucket, Message, identify, of_project
from memd.memory.document import Document

EXAMPLES = 5
"""Most cases of each kind that the report shows."""


@dataclass
class Findings:
    """The faults of the documents: the count and the first cases of each kind."""

    stored: int = 0
    lost: int = 0
    twice: int = 0
    out_of_order: int = 0
    wrong_user: int = 0
    foreign: int = 0
    """Facts that nobody pushed."""

    wrong_document: int = 0
    """Facts of a project elsewhere than in its document, and others there."""

    ledger: int = 0
    """Identities that a ledger lacks or has too many of. Replies make no fact, so only the ledger shows them."""

    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, kind: str, cases: Collection[str]) -> None:
        """Count cases of a kind."""
        setattr(self, kind, getattr(self, kind) + len(cases))
        if cases:
            self.examples[kind] = [*self.examples[kind], *list(cases)[:EXAMPLES]][:EXAMPLES]


def compare(plan: Plan, numbers: Iterable[int], read: Callable[[Bucket], Document]) -> Findings:
    """Compare the document of every bucket with the acknowledged contexts of these numbers."""
    expected: dict[Bucket, list[Turn]] = defaultdict(list)
    for number in sorted(numbers):
        turn = load.turn(plan, number)
        expected[turn.bucket].append(turn)
    findings = Findings()
    shared: dict[str, dict[str, Turn]] = defaultdict(dict)
    for bucket, turns in expected.items():
        document = read(bucket)
        marked = {turn.statement: (mark, turn) for turn in turns if (mark := load.mark(plan, turn.number))}
        for statement, (mark, turn) in marked.items():
            shared[mark][statement] = turn
        held = [str(fact["content"]) for field in ("facts", "scoped", "archive") for fact in document.get(field, ())]
        findings.add("wrong_document", [text for text in held if text in marked])
        own = [fact for fact in document["facts"] if fact["content"] not in marked]
        _facts(findings, bucket, [turn for turn in turns if turn.statement not in marked], {**document, "facts": own})
        _ledger(findings, bucket, turns, document)
    for index in range(plan.projects):
        _project(findings, shared[load.project(index)], read(of_project(load.project(index))))
    return findings


def _project(findings: Findings, wanted: Mapping[str, Turn], document: Document) -> None:
    """The document of a project: each fact once, by the user who said it, and nothing of another project."""
    facts = {str(fact["content"]): fact for fact in document["facts"]}
    found = Counter(str(fact["content"]) for fact in document["facts"])
    findings.stored += len(wanted.keys() & found.keys())
    findings.add("lost", [text for text in wanted if text not in found])
    again = [text for text, fact in facts.items() if fact.get("confirmations")]
    findings.add("twice", [text for text, count in found.items() if count > 1] + again)
    findings.add("wrong_document", [text for text in found if text not in wanted])
    said = {text: turn.bucket.user_id for text, turn in wanted.items()}
    findings.add("wrong_user", [text for text in said if text in facts and facts[text]["createdBy"] != said[text]])


def _facts(findings: Findings, bucket: Bucket, turns: list[Turn], document: Document) -> None:
    contents = [str(fact["content"]) for fact in document["facts"]]
    wanted = {turn.statement: turn for turn in turns}
    found = Counter(contents)
    findings.stored += len(wanted.keys() & found.keys())
    findings.add("lost", [text for text in wanted if text not in found])
    # A message applied a second time gives the same fact again, which confirms it.
    confirmed = [str(fact["content"]) for fact in document["facts"] if fact.get("confirmations")]
    findings.add("twice", [text for text, count in found.items() if count > 1] + confirmed)
    findings.add("wrong_user", [text for text in found if _is_of_another(text, bucket)])
    findings.add("foreign", [text for text in found if text not in wanted and not _is_of_another(text, bucket)])
    findings.add("out_of_order", _out_of_order(contents, wanted))


def _is_of_another(text: str, bucket: Bucket) -> bool:
    named = load.owner(text)
    return named is not None and named[1:3] != (bucket.user_id, bucket.agent_name or "nobody")


def _out_of_order(contents: Iterable[str], wanted: Mapping[str, Turn]) -> list[str]:
    """Facts that come after a later fact of their thread."""
    latest: dict[str, int] = {}
    wrong: list[str] = []
    for text in contents:
        turn = wanted.get(text)
        if turn is None:
            continue
        if turn.place < latest.get(turn.thread, -1):
            wrong.append(text)
        latest[turn.thread] = max(turn.place, latest.get(turn.thread, -1))
    return wrong


def _ledger(findings: Findings, bucket: Bucket, turns: list[Turn], document: Document) -> None:
    wanted: dict[str, set[str]] = defaultdict(set)
    for turn in turns:
        messages = [Message(**fields) for fields in turn.messages]  # type: ignore[arg-type]  # roles of ours
        wanted[turn.thread] |= {message.identity for message in identify(turn.thread, messages)}
    held: dict[str, list[str]] = document["ledger"]
    wrong = [
        f"{bucket.user_id} {thread}: {identity}"
        for thread in wanted.keys() | held.keys()
        for identity in (wanted[thread] ^ set(held.get(thread, ())))
    ]
    repeated = [f"{bucket.user_id} {thread}" for thread, listed in held.items() if len(set(listed)) < len(listed)]
    findings.add("ledger", wrong + repeated)
