"""No leak through the request: a fact for a project may not carry what stands only in the request's private part. Pure.

The model sees the member's own memory and private turns beside those of the project, so a word of these may slip into a
sentence for all members. Such a fact stays private, and so does what is about a person rather than the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memd.extraction.update import NewFact
from memd.memory.duplicates import IS_CJK, tokens
from memd.memory.text import CJK, fold

PERSONAL = frozenset({"identity", "preference", "behavior"})
"""Categories that tell of a person; what they say of a project stays with the member who said it."""

WORD = 4
"""Letters of a word that says something; shorter ones only as names and numbers."""

STEM = 5
"""Letters by which two forms of a word count as one: "deploys", "deployment"."""

_NAME = re.compile(rf"(?<![^\W_])[^\W\d_{CJK}]+")
_NUMBER = re.compile(r"\d[\d.,:/-]*")

_COMMON = frozenset((
    "user project team member people person thing work works working worked uses used using with from into onto that "
    "this these those their them they there then than when where which what while will would shall should must might "
    "could cannot have been being does done make made making take taken need needs want wants like likes also only just "
    "more most much many some such each every other another about after before over under until since because between "
    "during without within instead rather both either neither once always never still already now current currently "
    "decided decide decision agreed chosen choose chose prefer prefers keep keeps kept goes going moved move moving "
    "start started starts begin began plan plans planned next last first second third today tomorrow yesterday week "
    "weeks month months year years time times date days part parts well very same different good best better long short "
    "large small whole high lower least able allowed allow allows require requires required include includes including "
    "instead call called calls call name named says said tell told know known give given gets getting come comes came "
    "must through your yours ours mine across against along among around based even ever here however itself less "
    "need none onto others ought perhaps quite really several soon though together toward towards upon usually whether"
).split())  # fmt: skip
"""English words that name nothing: they betray no secret wherever they stand."""

_COMMON_CJK = frozenset((
    "用户 项目 我们 他们 你们 大家 团队 成员 使用 采用 需要 必须 应该 可以 已经 决定 目前 所有 进行 因为 所以 但是 而且 "
    "如果 以后 之后 以前 之前 开始 现在 今天 明天 昨天 这个 那个 一个 没有 不能 不再 不要 不会 就是 还是 或者 以及 通过 "
    "对于 关于 其他 其中 每个 每次 时候 时间 部分 方面 一样 一起 一直 只能 只有 还有 都是 都要 是否 由于 作为 包括 改为 "
    "改用 不用 选择 统一 全部 计划 要求 规定 负责 工作 主要 问题 情况 方式"
).split())  # fmt: skip


def is_personal(fact: NewFact, category: str) -> bool:
    """Whether a fact tells of a person rather than of the project, so that it is never published by itself.

    `category`: as it would be stored.
    """
    return fact.subject is not None or fact.sensitive or category in PERSONAL


class Fence:
    """What stands in the private part of a request, and what in a project's own: its marked messages and its facts."""

    def __init__(self, private: Iterable[str], project: Iterable[str]) -> None:
        self._private = frozenset(key for text in private for key in _keys(text))
        self._project = frozenset(key for text in project for key in _keys(text))
        self._secret = self._private - self._project

    def holds_back(self, content: str) -> bool:
        """Whether a sentence has a word, number or name that only the private part has."""
        return bool(self._secret) and not self._secret.isdisjoint(_keys(content))


def _keys(text: str) -> Iterator[str]:
    """The words, numbers and names of a text that say something, in the form in which they are compared."""
    for token in tokens(text):
        if IS_CJK.match(token):
            if len(token) == 2 and token not in _COMMON_CJK:
                yield token
        elif any(map(str.isdigit, token)) or (len(token) >= WORD and token not in _COMMON):
            yield token[:STEM] if token.isalpha() else token
    for name in _NAME.finditer(text):
        word = fold(name[0])
        if name[0][0].isupper() and 2 <= len(word) < WORD and word not in _COMMON:
            yield word
    for number in _NUMBER.findall(text):
        yield number.strip(".,:/-")
