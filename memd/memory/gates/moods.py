"""Moods: whether a passage states a fact, only asks, supposes, denies or jokes about it, or answers something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from memd.memory.text import CJK, fold
from memd.push.answers import Before, strength_of
from memd.push.patterns import Lists, prepared

STEM = 4
"""Letters that two words must share at their beginning to count as one."""

_NEAR = 300
"""Characters of a sentence that are read before and behind a passage."""

_NEXT = 24
"""Characters behind a passage that may say it was a joke."""

_BARE = 40
"""Characters of a bare yes in words that are not listed for acknowledgements."""

_ASKED = 2_000
"""Characters at the end of the assistant's turn in which its question is looked for."""

_LISTS = Lists(
    Path(__file__).parent / "support",
    "hedges",
    "denied",
    "mine",
    "asks",
    "opens",
    "deliberates",
    "told",
    "self",
    "supposes",
    "returns",
    "unreal",
    "jokes",
    "plays",
    "harmless",
    "denies",
    "owned",
)
_STOP_OF_TITLE = re.compile(r"\.(?= )(?:(?<=\bMrs\.)|(?<=\b(?:Mr|Ms|Dr)\.))", re.IGNORECASE)
"""It ends no sentence. Like the next one it begins with the mark, and so is found in a tenth of the time."""

_SENTENCE_END = re.compile(r"[.!?。！？\n](?:[.!?。！？\n]*(?=\s|$|[\u3000-\uffff])|(?<=[。！？\n])[。！？\n]*)")
_CLAUSE_END = re.compile(r"[，；]|[,;] ")
"""Behind it a sentence may go on to ask something else: "I'm vegan, what can I eat here?"."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+")
_ENDING = re.compile(r"(?<=..)(?:(?:i?e|y|ing|ed|s)+)$")
_CJK = re.compile(f"[{CJK}]")
_CJK_RUN = re.compile(f"[{CJK}]+")
_ONLY_MARKS = re.compile(r"[\W_]*(?:(?:ha|he|lol|哈|嘿)+[\W_]*)*")
_QUESTION_MARK = re.compile(r"[?？][\s\"'”’)）]*$")


Mood = Literal["question", "hypothetical", "negation", "joke", ""]


@prepared
def _small() -> frozenset[str]:
    """Words that say nothing by themselves."""
    return frozenset(_LISTS.sources("small"))


@prepared
def _acks() -> frozenset[str]:
    return frozenset(_LISTS.sources("acks"))


def mood(fact: str, text: str, start: int, end: int) -> Mood:
    """What a passage of a message does instead of stating the fact; "" when it states it."""
    sentences = list(_sentences(text, start, end))
    plain = fold(fact)
    hedged = _LISTS["hedges"].search(plain) is not None
    if _is_taken_back(text, start, end):
        return "joke"
    begun = _sentences(text, start, end, with_rest=False)
    if not hedged and all(map(_only_asks, sentences, begun)):
        return "question"
    before = text[max(0, start - _NEAR) : start]
    if not hedged and all(_supposes(one, before) for one in _back_from_supposing(sentences, text[start:end])):
        return "hypothetical"
    if not _LISTS["denied"].search(plain) and _is_denied(sentences, plain, fold(text[start:end])):
        return "negation"
    return ""


def is_announced_as_own(text: str, place: int) -> bool:
    """Whether a shown text is announced as the user's own ("Proofread my rules: …"); never code, nor lines with ">"."""
    line = text[text.rfind("\n", 0, place) + 1 : place + 1].lstrip()
    if line.startswith((">", "＞")) or "```" in text[:place] or "~~~" in text[:place]:
        return False
    return _LISTS["mine"].search(fold(text[:_NEAR])) is not None


def is_bare(text: str) -> bool:
    """Whether a turn of the user is a yes or no without words of its own: the question before it says what it means."""
    if strength_of(text) is not None:
        return True
    words = _WORD.findall(fold(text)) if len(text) <= _BARE else []
    return bool(words) and all(word in _acks() for word in words)


def answers_it(fact: str, asked: str) -> bool:
    """Whether a fact is what a bare yes or no to this turn of the assistant says: the question shares a word with it.

    Of a question in another script no word can be shared; it counts unless it only offers something.
    """
    question = _last_question(asked)
    if _shares(fold(fact), fold(question)):
        return True
    same_script = bool(_CJK.search(fact)) == bool(_CJK.search(question))
    return not same_script and Before(asked).end == "question"


def _sentences(text: str, start: int, end: int, *, with_rest: bool = True) -> Iterator[str]:
    """The sentences that a passage touches, folded; of long ones the part near the passage.

    `with_rest`: else a sentence ends with the clause that the passage ends in.
    """
    near = max(0, start - _NEAR)
    text, start, end, first = _STOP_OF_TITLE.sub(" ", text[near : end + _NEAR]), start - near, end - near, 0
    for stop in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        if stop > start and first < end and text[first:stop].strip():
            rest = None if with_rest else _CLAUSE_END.search(text, min(end, stop), stop)
            yield fold(text[first : rest.start() if rest else stop])
        first = stop


def _only_asks(sentence: str, begun: str) -> bool:
    """Whether a sentence is a question that tells nothing of the person who asks.

    `begun`: what the question may only come behind, as in "vegan for six years, what can I eat here?".
    """
    if not (_QUESTION_MARK.search(sentence) or _LISTS["asks"].search(sentence)):
        return False
    if begun != sentence and not any(_LISTS[name].search(begun) for name in ("asks", "opens", "deliberates")):
        return False
    if _LISTS["deliberates"].search(sentence):
        return not _LISTS["told"].search(sentence)
    return not _LISTS["self"].search(sentence)


def _supposes(sentence: str, before: str) -> bool:
    return _LISTS["supposes"].search(sentence) is not None or _LISTS["plays"].search(fold(before)) is not None


def _back_from_supposing(sentences: Sequence[str], passage: str) -> Iterator[str]:
    """The sentences from the words on that lead a passage back to what is: "if I were rich I'd move, but I rent".

    Not where nothing unreal was said before: "suppose I'm vegan, but I eat eggs" goes on supposing.
    """
    passage = fold(passage)
    for sentence in sentences:
        place = sentence.find(passage)
        back = [found.start() for found in _LISTS["returns"].finditer(sentence) if found.start() <= place]
        is_back = bool(back) and _LISTS["unreal"].search(sentence, 0, back[-1]) is not None
        yield sentence[back[-1] :] if is_back else sentence


def _is_taken_back(text: str, start: int, end: int) -> bool:
    """Whether a passage ends with the words that call it a joke, or they come next after it."""
    passage, behind = fold(text[start:end]), fold(text[end : end + _NEXT])
    inside = [found.end() for found in _LISTS["jokes"].finditer(passage)]
    next_to_it = _LISTS["jokes"].search(behind)
    return bool(inside and len(passage) - inside[-1] <= 2) or (
        next_to_it is not None and _ONLY_MARKS.fullmatch(behind[: next_to_it.start()]) is not None
    )


def _is_denied(sentences: Sequence[str], fact: str, passage: str) -> bool:
    """Whether words that the sentences deny, and nowhere say undenied, stand undenied in the fact."""
    said = _LISTS["harmless"].sub(" ", " \n".join(sentences))
    for match in _LISTS["denies"].finditer(said):
        denied = next(group for group in match.groups() if group is not None)
        rest = said[: match.start()] + said[match.end() :]
        if _CJK.search(denied):
            pair = denied[:2]
            if len(pair) > 1 and pair in passage and pair not in rest and denied[:3] in fact:
                return True
            continue
        denied = _LISTS["owned"].split(denied)[0]
        words = [word for word in _WORD.findall(denied) if word not in _small() and len(word) > 2][:2]
        if (
            words
            and _has(passage, words[0])
            and all(_has(fact, word) for word in words)
            and not all(_has(rest, word) for word in words)
        ):
            return True
    return False


def _has(text: str, word: str) -> bool:
    """Whether a text has the word, in whatever form."""
    stem = _ENDING.sub("", word)
    return any(other.startswith(stem) for other in _WORD.findall(text))


def _last_question(asked: str) -> str:
    """The last sentence that asks, else the last one."""
    lines = _SENTENCE_END.sub(lambda end: end[0] + "\n", asked[-_ASKED:]).splitlines()
    sentences = [line for line in lines if line.strip()]
    questions = [sentence for sentence in sentences if _QUESTION_MARK.search(sentence)]
    return (questions or sentences or [""])[-1]


def _shares(one: str, other: str) -> bool:
    stems = {word[: STEM + 1] for word in _content(other)}
    return any(word[: STEM + 1] in stems for word in _content(one)) or bool(_pairs(one) & _pairs(other))


def _content(text: str) -> Iterator[str]:
    words = (word for word in _WORD.findall(text) if word not in _small() and not _CJK.search(word))
    return (word for word in words if len(word) > 2 or word.isdigit())


def _pairs(text: str) -> set[str]:
    pairs = {run[place : place + 2] for run in _CJK_RUN.findall(text) for place in range(len(run) - 1)}
    return pairs - _small()
