"""An outline of turns without a model: sentences of theirs, in their order, and which tools were used.

It says of itself that no model made it. The sentences are verbatim, so they are in the language of the conversation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import NamedTuple

from memd.context import tenths_of_tokens
from memd.push.sentence_ends import sentence_ends
from memd.session.chat import SUMMARY_HEAD, ChatTurn, is_notes
from memd.session.told import TURN_CHARS, redacted

SENTENCE_CHARS = 240
"""Characters of a sentence at most; a longer one is cut."""

EARLIER = 0.4
"""The share of the outline for the summary of still older turns, where there is one."""

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_NAMED = re.compile(r"\d|\S [A-Z][a-z]|[A-Za-z_][./_][A-Za-z_]|[“\"「]")
"""What a sentence has that is worth its place: a number, a name inside it, a path, a quoted word."""

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_LETTER = re.compile(r"[^\W\d_]")


class _Words(NamedTuple):
    head: str
    user: str
    assistant: str
    tools: str


_ENGLISH = _Words("Outline of earlier turns, by no model, in their own sentences:", "user", "assistant", "tools used")
_CHINESE = _Words("先前对话的提纲，未经模型概括，均为原句：", "用户", "助手", "用过的工具")


class _Line(NamedTuple):
    """A sentence with who said it: how much it matters, and its place in the conversation."""

    rank: int
    place: int
    text: str


def outline(turns: Sequence[ChatTurn], tokens: int) -> str:
    """The outline of turns in at most so many estimated tokens. Summaries among them come first, as they are."""
    words = _words(turns)
    said = [turn for turn in turns if turn.kind == "said"]
    tools = _tools(said, words)
    room = 10 * tokens - tenths_of_tokens(f"{words.head}\n{tools}\n")
    older = _fitting(_earlier(turns), room if not said else int(EARLIER * room))
    chosen = _chosen(list(_sentences(said, words)), room - tenths_of_tokens(older + "\n"))
    return "\n".join(filter(None, [words.head, older, *chosen, tools]))


def _fitting(lines: list[str], tenths: int) -> str:
    """The first line, which says what it is all about, and the last ones: as many as cost so many tenths of a token."""
    head, tail = lines[:1], list[str]()
    tenths -= sum(tenths_of_tokens(line + "\n") for line in head)
    for line in reversed(lines[1:]):
        tenths -= tenths_of_tokens(line + "\n")
        if tenths < 0:
            break
        tail.append(line)
    return "\n".join([*head, *reversed(tail)])


def _earlier(turns: Sequence[ChatTurn]) -> list[str]:
    """The lines of the summaries among the turns, without the heads of outlines; of a long line its sentences."""
    heads = {_ENGLISH.head, _CHINESE.head, SUMMARY_HEAD.strip(), ""}
    texts = [turn.text for turn in turns if is_notes(turn)]
    lines = [line for text in texts for line in text.splitlines() if line.strip() not in heads]
    return [part for line in lines for part in (_parts(line) if len(line) > SENTENCE_CHARS else (line,))]


def _parts(line: str) -> Iterator[str]:
    for start, end in pairwise([0, *sentence_ends(line)]):
        if line[start:end].strip():
            yield line[start:end].strip()[:SENTENCE_CHARS]


def _words(turns: Sequence[ChatTurn]) -> _Words:
    """The words of the language that the user writes, as far as we have them."""
    said = " ".join(turn.text[:TURN_CHARS] for turn in turns if turn.role == "user")
    return _CHINESE if 3 * len(_CJK.findall(said)) > len(_LETTER.findall(said)) else _ENGLISH


def _tools(turns: Sequence[ChatTurn], words: _Words) -> str:
    counted = Counter(use.name for turn in turns for use in turn.calls)
    names = ", ".join(f"{name} ×{count}" for name, count in counted.most_common(20))
    return f"- {words.tools}: {names}" if names else ""


def _sentences(turns: Sequence[ChatTurn], words: _Words) -> Iterator[_Line]:
    """The sentences of user and assistant, outside code. What tools returned is not their words."""
    place = count()
    for turn in turns:
        speaker = {"user": words.user, "assistant": words.assistant}.get(turn.role)
        if speaker is None:
            continue
        text, start, opens = _FENCE.sub("\n", redacted(turn.text, TURN_CHARS)), 0, True
        for end in sentence_ends(text):
            sentence, start = " ".join(text[start:end].split()), end
            if len(sentence) > 1:
                rank = _rank(turn, sentence, opens=opens, is_task=turn is turns[0])
                yield _Line(rank, next(place), f"- {speaker}: {sentence[:SENTENCE_CHARS]}")
                opens = False


def _rank(turn: ChatTurn, sentence: str, *, opens: bool, is_task: bool) -> int:
    """`opens`: it is the first one of its turn. `is_task`: its turn is the first, which says what it is all about."""
    if turn.role == "assistant":
        return _weigh(sentence)
    return 2 * is_task + 2 * _weigh(sentence) + opens


def _weigh(sentence: str) -> int:
    return int(_NAMED.search(sentence) is not None)


def _chosen(lines: list[_Line], tenths: int) -> list[str]:
    """The lines that matter most, of equals the newest, as many as fit; in the order of the conversation."""
    kept: list[_Line] = []
    for line in sorted(lines, reverse=True):
        cost = tenths_of_tokens(line.text + "\n")
        if cost > tenths:
            break
        tenths -= cost
        kept.append(line)
    return [line.text for line in sorted(kept, key=lambda line: line.place)]
