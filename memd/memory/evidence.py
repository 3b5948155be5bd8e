"""Evidence: only the user's own new messages prove a fact, by a verbatim quote that is long enough to say something."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from memd.context import Message
from memd.extraction.update import Evidence as Quoted
from memd.memory import sayings
from memd.memory.facts import Evidence
from memd.memory.sayings import Saying
from memd.memory.text import CJK, fold

MAX_QUOTE_CHARS = 500
"""Characters of a quote that are kept; the beginning of a verbatim quote is verbatim too."""

MAX_EVIDENCE = 5
"""Quotes kept for one fact."""

_UNSPACED = f"{CJK}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Characters of scripts that put no space between words: Chinese, Japanese, Thai, Lao, Burmese, Khmer; and Korean."""

_WORD = re.compile(rf"(?<![^\W_{_UNSPACED}])[^\W_{_UNSPACED}]+(?:['’-][^\W_{_UNSPACED}]+)*(?![^\W_{_UNSPACED}])")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_LETTERS = re.compile(r"[^\W_]+")


class UserMessages:
    """The new user messages of one thread, in which quotes are looked up. Each is folded once, when first needed."""

    def __init__(self, thread_id: str, sent: Sequence[Message], new: Collection[str]) -> None:
        self._thread_id = thread_id
        self._messages = {i: m for i, m in enumerate(sent) if m.role == "user" and m.identity in new}
        self._folded: dict[int, str] = {}

    def hold(self, quote: str) -> bool:
        """Whether any of the messages contains the quote, whoever said it."""
        return self._place(quote, -1, None) is not None

    def last_own(self) -> Saying | None:
        """When the last of the user's own messages was said; None where only others spoke."""
        own = [m for m in self._messages.values() if m.name is None]
        if self._messages and not own:
            return None
        return sayings.latest(sayings.of_message(m, self._thread_id) for m in own)

    def evidence(self, quoted: Sequence[Quoted], person: str = "") -> list[Evidence]:
        """The quotes that are verbatim, as the document keeps them. `person`: whom the fact is about, folded.

        A quote from another user message than the one named counts: only the number was wrong. The words of another
        speaker than the user count for facts about that speaker.
        """
        entries: list[Evidence] = []
        for item in quoted:
            place = self._place(item.quote, item.message, person) if len(entries) < MAX_EVIDENCE else None
            if place is not None:
                entry = self._entry(place, item.quote)
                if entry not in entries:
                    entries.append(entry)
        return entries

    def quote(self, quote: str, person: str = "") -> list[Evidence]:
        """The evidence that a quote of any message gives. `person`: as for `evidence`."""
        place = self._place(quote, -1, person)
        return [] if place is None else [self._entry(place, quote)]

    def why_not(self, quotes: Iterable[str]) -> str:
        """Why quotes are no evidence: they are not verbatim, or only somebody else than the person said them."""
        return "other_speaker" if any(map(self.hold, quotes)) else "quote_not_found"

    def signalled(self, evidence: Sequence[Evidence], signal: str) -> bool:
        """Whether a message that these entries quote carries the signal."""
        named = {entry["message"] for entry in evidence}
        return any(signal in m.signals for m in self._messages.values() if (m.id or m.identity) in named)

    def identities(self, evidence: Sequence[Evidence]) -> list[str]:
        """The identities of the messages that these entries quote."""
        named = {entry["message"] for entry in evidence}
        return [message.identity for message in self._messages.values() if (message.id or message.identity) in named]

    def _entry(self, place: int, quote: str) -> Evidence:
        message = self._messages[place]
        entry: Evidence = {
            "thread": self._thread_id,
            "message": message.id or message.identity,
            "quote": quote[:MAX_QUOTE_CHARS],
        }
        if message.said_at:
            entry |= {"saidAt": message.said_at, "order": message.order}
        return entry

    def _place(self, quote: str, expected: int, person: str | None) -> int | None:
        """The message that contains a quote. `person`: whom the fact is about; None: whoever said it."""
        text = fold(quote)
        if not any(map(str.isalnum, text)):
            return None
        heard = [i for i, message in self._messages.items() if person is None or may_prove(message.name, person)]
        if expected in heard and proves(text, self._text(expected)):
            return expected
        return next((i for i in heard if proves(text, self._text(i))), None)

    def _text(self, index: int) -> str:
        if index not in self._folded:
            self._folded[index] = fold(self._messages[index].content)
        return self._folded[index]


def may_prove(name: str | None, person: str) -> bool:
    """Whether the words of this speaker (None: the user) prove facts about this person (folded; "": the user).

    The user speaks of everybody, others only of themselves; "Ben" and "Ben Carter" may be one.
    """
    if name is None:
        return True
    words, others = set(fold(name).split()), set(person.split())
    return bool(others) and (words <= others or others <= words)


def proves(quote: str, message: str) -> bool:
    """Whether a quote is in a message, both folded, and long enough: two whole words, three characters, or all of it.

    The characters are those of scripts without spaces between words; a word counts as one and a half of them.
    """
    start = message.find(quote)
    while start >= 0:
        if _says_something(message, start, start + len(quote)):
            return True
        start = message.find(quote, start + len(quote))
    return False


def _says_something(message: str, start: int, end: int) -> bool:
    words = sum(word.end() <= end for word in _WORD.finditer(message, start, end + 1))
    if 3 * words + 2 * len(_UNSPACED_CHARACTER.findall(message, start, end)) >= 6:
        return True
    return not _LETTERS.search(message, 0, start) and not _LETTERS.search(message, end)
