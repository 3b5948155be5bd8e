"""The rules: functions from a document to findings. What apply refuses today, they find in older documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from memd.config import ApplySettings
from memd.memory.document import SECTIONS, Document, Fact, archive_of, facts_of, moment, summaries_of
from memd.memory.duplicates import similarity
from memd.memory.facts import (
    asides_of,
    content_of,
    evidence_of,
    id_of,
    is_correction,
    is_manual,
    is_note,
    origin_of,
    person_of,
    quotes_of,
    touched_at,
    valid_until,
)
from memd.memory.gates.instructions import text_refusal
from memd.memory.gates.refusal import content_refusal
from memd.memory.gates.uploads import is_upload_event
from memd.memory.parsing import broken_fields
from memd.memory.text import normal_key, one_line, same_key
from memd.push.filtering import is_acknowledgement
from memd.push.redaction import find, holds_secret, redact

_NOTHING = re.compile(
    r"n/?a|none|null|nothing|unknown|no (?:new )?(?:information|facts?|data)(?: (?:available|found|provided))?"
    r"|(?:the )?user (?:(?:has |just )?(?:said (?:hello|hi|thanks?|goodbye)|greeted|thanked|acknowledged"
    r"|asked (?:a question|about|how|what|when|where|whether|why|if)|started a conversation)"
    r"|(?:is|was) asking|wants? to know)\b.*"
    r"|无|暂无(?:信息)?|没有(?:新的?)?信息"
    r"|用户(?:刚刚?|已经?)?(?:打了?个?招呼|问候|说了?(?:你好|谢谢|再见)|表示感谢|询问|提问|问了|想知道|开始了?对话).*",
    re.IGNORECASE,
)
"""Sentences about a conversation instead of a person."""

_BLOCK = re.compile(
    r"</?memory>|&lt;/?memory&gt;|\[[a-z]+ \| [01]\.\d\d\] |^(?:User Context|History|Facts):$"
    r"|^- (?:Work|Personal|Current Focus|Recent|Earlier|Background): ",
    re.IGNORECASE | re.MULTILINE,
)
"""What only the block of `memd inject` looks like."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that should not be there. `text` never holds a secret; `fact_id` is empty for a summary."""

    rule: str
    place: str
    fact_id: str
    detail: str
    text: str


@dataclass(frozen=True, slots=True)
class _Piece:
    """A text of the document: `field` of `owner`, which is a fact or the whole of a summary."""

    owner: str
    field: str
    fact_id: str
    text: str

    @property
    def place(self) -> str:
        """The path of the field."""
        return f"{self.owner}.{self.field}".rstrip(".")


Rule = Callable[[Document, datetime, ApplySettings], Iterator[Finding]]


def audit(document: Document, now: datetime, settings: ApplySettings) -> list[Finding]:
    """All findings of all rules, in the order of `RULES`."""
    return [finding for rule in RULES.values() for finding in rule(document, now, settings)]


def _junk(document: Document, _: datetime, settings: ApplySettings) -> Iterator[Finding]:
    """Facts that say nothing about anybody."""
    for place, fact in _facts(document):
        content = one_line(content_of(fact))
        reason = content_refusal(content, settings)
        if reason in ("too_short", "too_long", "upload_event"):
            yield _finding("junk", place, fact, reason)
        elif not any(map(str.isalnum, content)) or is_acknowledgement(content):
            yield _finding("junk", place, fact, "no statement")
        elif _NOTHING.fullmatch(content.rstrip(".。!！")):
            yield _finding("junk", place, fact, "about the conversation")
    for piece in _summaries(document):
        if is_upload_event(piece.text):
            yield _piece_finding("junk", piece, "upload_event")


def _duplicate(document: Document, _: datetime, settings: ApplySettings) -> Iterator[Finding]:
    """Facts that say what an earlier one says already: in the same words, spelled otherwise, or nearly."""
    before: list[_Statement] = []
    for place, fact in _facts(document):
        said = _Statement(fact, person_of(fact), same_key(content_of(fact)), normal_key(content_of(fact)))
        kinds = [(_alike(said, other, settings.near_duplicate), other) for other in before]
        kind, other = max(kinds, key=lambda kind: _STRENGTH.index(kind[0]), default=("", said))
        if kind:
            yield _finding("duplicate", place, fact, f"{kind}, of {id_of(other.fact)}")
        before.append(said)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A fact, and what of it is compared: of whom, in which words, in which words however spelled."""

    fact: Fact
    person: str
    same: str
    normal: str


_STRENGTH = ("", "near", "normalised", "exact")


def _alike(one: _Statement, other: _Statement, near: float) -> str:
    if one.person != other.person:
        return ""
    if one.same == other.same:
        return "exact"
    if one.normal == other.normal:
        return "normalised"
    return "near" if near < 1 and similarity(content_of(one.fact), content_of(other.fact), near) >= near else ""


def _echo(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Facts that memd told itself: they quote its own block, or nothing but it proves them."""
    for place, fact in _facts(document):
        quotes = quotes_of(fact)
        if _BLOCK.search(content_of(fact)):
            yield _finding("echo", place, fact, "quotes the injected block")
        elif quotes and all(map(_BLOCK.search, quotes)):
            yield _finding("echo", place, fact, "only the injected block proves it")


def _secret(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Keys, tokens, passwords, card numbers: in facts, beside them, in quotes, summaries and the archive."""
    for pieces in _by_owner(_everything(document)):
        found = {piece.place: kinds for piece in pieces if (kinds := _secrets(piece))}
        if found:
            owner = pieces[0].owner
            fields = (f"{kinds} in {place.removeprefix(owner).lstrip('.') or 'it'}" for place, kinds in found.items())
            first = next(piece for piece in pieces if piece.place in found)
            yield Finding("secret", owner, first.fact_id, ", ".join(fields), redact(first.text)[0])


def _secrets(piece: _Piece) -> str:
    """The kinds of secrets in a text. What was cut out before a model saw it may show in what it quotes, not else."""
    kinds = {kind for *_, kind in find(piece.text)}
    if not kinds and piece.field in ("", "content") and holds_secret(piece.text):
        return "one that was cut out"
    return " and ".join(sorted(kinds))


def _stale(document: Document, now: datetime, settings: ApplySettings) -> Iterator[Finding]:
    """Facts past their time, and facts that nobody has confirmed for long."""
    oldest = now - timedelta(days=settings.stale_after_days) if settings.stale_after_days else None
    for place, fact in _facts(document):
        if is_manual(fact) or is_correction(fact):
            continue
        until = moment(valid_until(fact))
        times = [time for text in touched_at(fact) if (time := moment(text)) is not None]
        if until is not None and until < now:
            yield _finding("stale", place, fact, f"valid until {until.date()}")
        elif times and oldest is not None and max(times) < oldest:
            yield _finding("stale", place, fact, f"not confirmed since {max(times).date()}")


def _unevidenced(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Facts that nobody can prove; what a hand wrote needs no proof."""
    for place, fact in _facts(document):
        if not is_manual(fact) and not any(quote.strip() for quote in quotes_of(fact)):
            imported = origin_of(fact).get("importedFrom")
            plain = "an agent's note" if is_note(fact) else "no quote"
            yield _finding("unevidenced", place, fact, f"imported from {imported}" if imported else plain)


def _instruction(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Orders to an assistant, and text that hides."""
    for piece in _active(document):
        if text_refusal(piece.text) == "instruction":
            yield _piece_finding("instruction", piece, "an order, or hidden text")


def _markup(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Tags and role marks."""
    for piece in _active(document):
        if text_refusal(piece.text) == "markup" or one_line(piece.text) != " ".join(piece.text.split()):
            yield _piece_finding("markup", piece, "tags or invisible characters")


def _malformed(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Fields that a hand broke, and that are read as absent."""
    for sentence in broken_fields(document):
        place, verb, expected = sentence.partition(" should be ")
        yield Finding("malformed", place, "", f"{verb.strip()} {expected}", "")


RULES: dict[str, Rule] = {
    "junk": _junk,
    "duplicate": _duplicate,
    "echo": _echo,
    "secret": _secret,
    "stale": _stale,
    "unevidenced": _unevidenced,
    "instruction": _instruction,
    "markup": _markup,
    "malformed": _malformed,
}
"""All rules by name, in the order in which they are told."""


def _facts(document: Document) -> Iterator[tuple[str, Fact]]:
    return ((f"facts[{number}]", fact) for number, fact in enumerate(facts_of(document)))


def _everything(document: Document) -> Iterator[_Piece]:
    """Every text of the document, those of one owner in a row."""
    for place, fact in _facts(document):
        yield from _texts(place, fact)
        yield from _quotes(place, fact)
    yield from _summaries(document)
    for number, entry in enumerate(archive_of(document)):
        yield from _texts(f"archive[{number}]", entry)
        yield from _quotes(f"archive[{number}]", entry)


def _active(document: Document) -> Iterator[_Piece]:
    """The texts that get into a prompt."""
    for place, fact in _facts(document):
        yield from _texts(place, fact)
    yield from _summaries(document)


def _by_owner(pieces: Iterator[_Piece]) -> Iterator[list[_Piece]]:
    return (list(group) for _, group in groupby(pieces, key=attrgetter("owner")))


def _texts(place: str, fact: Fact) -> Iterator[_Piece]:
    for field, text in {"content": content_of(fact), **asides_of(fact)}.items():
        yield _Piece(place, field, id_of(fact), text)


def _quotes(place: str, fact: Fact) -> Iterator[_Piece]:
    for number, entry in enumerate(evidence_of(fact)):
        if isinstance(entry.get("quote"), str):
            yield _Piece(place, f"evidence[{number}].quote", id_of(fact), entry["quote"])


def _summaries(document: Document) -> Iterator[_Piece]:
    for name, text in summaries_of(document):
        yield _Piece(f"{SECTIONS[name]}.{name}", "", "", text)


def _finding(rule: str, place: str, fact: Fact, detail: str) -> Finding:
    return Finding(rule, place, id_of(fact), detail, redact(content_of(fact))[0])


def _piece_finding(rule: str, piece: _Piece, detail: str) -> Finding:
    return Finding(rule, piece.place, piece.fact_id, detail, redact(piece.text)[0])
