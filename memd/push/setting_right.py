"""Setting right: a short reply that puts another value in place of one that the assistant has just said.

"1494." after "It was signed in 1492.", "Mia is my niece." after "Your daughter Mia could come": no word of it says that
anything was wrong; only the turn before shows it.
"""

from __future__ import annotations

import re

from memd.push.patterns import Lists, prepared

MOST_WORDS = 9
"""Words of such a reply; a word of a script without spaces counts as two characters."""

_LOOK_AT = 2_000
"""Characters at the end of the assistant's turn that are read."""

_QUESTION = re.compile(r"[?？]\s*$|[吗嗎呢]")
_WORDS = re.compile(r"[^\W_\u3400-\u9fff]+(?:'[^\W_]+)?|[\u3400-\u9fff]{1,2}")
_LISTS = Lists("setting_right", "praise", "says_is", "denies", "unable", "numbers", "days")


@prepared
def _small() -> frozenset[str]:
    return frozenset(_LISTS.sources("small"))


def sets_right(text: str, before: str) -> str:
    """The words of a text in lower case that set right what the assistant said before; "" when it does not."""
    reply = text.strip()
    if (
        not reply
        or _QUESTION.search(reply)
        or len(_WORDS.findall(reply[:200])) > MOST_WORDS
        or _LISTS["praise"].search(reply)
    ):
        return ""
    said = before[-_LOOK_AT:].lower()
    return _other_value(reply, said) or _other_subject(reply, said) or _denial(reply, said)


def _other_value(reply: str, said: str) -> str:
    """The number or day that the reply has in place of another one."""
    for kind in (_LISTS["numbers"], _LISTS["days"]):
        mine, theirs = [match[0] for match in kind.finditer(reply)], {match[0] for match in kind.finditer(said)}
        if mine and theirs and theirs.isdisjoint(mine):
            return mine[0]
    return ""


def _other_subject(reply: str, said: str) -> str:
    """The words that say what something is which the assistant has named."""
    match = _LISTS["says_is"].search(reply)
    if match is None:
        return ""
    subject: str = next(filter(None, match.groups()))
    return match[0] if subject in said else ""


def _denial(reply: str, said: str) -> str:
    """The word of a denial that the assistant has said."""
    if not _LISTS["denies"].search(reply) or _LISTS["unable"].search(reply):
        return ""
    theirs = set(_WORDS.findall(said)) - _small()
    return next((word for word in _WORDS.findall(reply) if len(word) > 2 and word in theirs), "")
