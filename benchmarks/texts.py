"""What reading one long text costs: the CPU of each stage for 100,000 characters, at worst and of plain English."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import date

from benchmarks.figures import Figure, Measurement, at_most
from benchmarks.sizes import Size
from memd.config import ClientSettings, SessionSettings
from memd.context import Message, estimate_tokens
from memd.extraction.offline.extractor import read
from memd.extraction.paragraphs import middle
from memd.extraction.reply import BadReply
from memd.extraction.reply import read as read_reply
from memd.memory.gates.instructions import kind_of
from memd.memory.gates.support import Quoted, Support
from memd.memory.outright import outright
from memd.memory.quotes import QuotedText
from memd.memory.said.excerpts import excerpts_in
from memd.memory.said.matter import Matter
from memd.memory.said.wishes import wish_of
from memd.memory.text import normal_key
from memd.push import answers, personal, tool_text
from memd.push.filtering import to_context
from memd.push.limits import shorten
from memd.push.redaction import find
from memd.push.signals import load_patterns
from memd.push.validation import check_push
from memd.session.chat import said
from memd.session.outline import outline
from memd.session.parts import fitted
from memd.session.told import told

AREA = "texts"
CHARS = 100_000
ROUNDS = 5

PLAIN = "We talked about the garden, and she said that it would rain by noon. "
WORST = (
    "pin 1234 ", "pin is ", "pin:abc1 ", "password is ", "//x/:_authToken=npm_", "4111 ", "4242424242424242 ", "sk-",
    "-----BEGIN PRIVATE KEY-----", "mysql -p", "session=", "密码是", "密码", "中文没有秘密。", "I live in Porto. ",
    "a\n1", "abcd.\n", "I am. ", "\"", "a\u00ad", "你 ", "－",
)  # fmt: skip
"""Repeated, the texts that cost some stage most of all that the search for slow texts has found."""

Search = Callable[[str], object]


def measure(_: Size) -> Iterator[Measurement]:
    """The least CPU of a few rounds: other load only adds."""
    for name, search in stages().items():
        plain = _cpu_ms(search, PLAIN)
        worst, piece = max((_cpu_ms(search, piece), piece) for piece in WORST)
        yield Figure(
            AREA, f"{name}, 100,000 characters at worst", worst, "ms", target=at_most(50),
            note=f"repeats of {piece!r}; plain English: {plain:.1f} ms",
        )  # fmt: skip


def stages() -> dict[str, Search]:
    """Every stage that reads the whole text of a user or a model."""
    patterns = load_patterns()
    limits, session = ClientSettings(), SessionSettings()

    def filtering(text: str) -> object:
        push = {"thread_id": "t", "user_id": "u", "messages": [{"role": "user", "content": text}]}
        return to_context(check_push(push, limits))

    def reply(text: str) -> object:
        try:
            return read_reply('{"newFacts": [' + text, [text])
        except BadReply as refused:  # as nearly every such text is
            return refused

    def support(text: str) -> object:
        quotes = [Quoted(0, " ".join(text[-500:].split()))]
        return Support([Message("user", text)], [], date.min).doubt(f"The user Bob has 12 {text[:500]}", quotes)

    def tool_texts(text: str) -> object:
        return tool_text.cut(text, lambda: True), tool_text.calls_a_tool(text)

    return {
        "filtering": filtering,
        "signals": lambda text: patterns.detect(text, text),
        "tool text": tool_texts,
        "questions": lambda text: answers.says_nothing("yes", answers.Before(text)),
        "redaction": find,
        "personal data": lambda text: list(personal.find(text)),
        "cut": lambda text: shorten(text, len(text) // 2),
        "gates": kind_of,
        "token estimate": estimate_tokens,
        "paragraphs": lambda text: middle(text, 0, len(text)),
        "wishes": wish_of,
        "matters": Matter(frozenset({"divorc"}), ("仓鼠",)).held_by,
        "remembering": outright,
        "excerpts": excerpts_in,
        "quotes": lambda text: QuotedText(text).find(text[:500]),
        "support of facts": support,
        "keys of facts": normal_key,
        "replies of models": reply,
        "offline extractor": lambda text: list(read(text)),
        "turns told": lambda text: told([said("user", text)], session, 80_000),
        "outline of turns": lambda text: outline([said("user", text)], session.summary_tokens),
        "parts of a prompt": lambda text: fitted(text, 1),  # whatever its length, it is cut
    }


def _cpu_ms(search: Search, piece: str) -> float:
    text = (piece * (CHARS // len(piece) + 1))[:CHARS]
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        search(text)
        times.append(time.process_time() - start)
    return min(times) * 1000
