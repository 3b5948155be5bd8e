"""Many texts as one, so that a search for a word takes one pass over them all, and not a look at each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


class ManyTexts:
    """Texts in order, without line breaks. A text is named by its place."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._joined = "\n".join(texts)

    def and_(self, more: Sequence[str]) -> ManyTexts:
        """These and further texts behind them."""
        return ManyTexts([*self.texts, *more])

    def holding(self, word: str) -> Iterator[int]:
        """The places of the texts that hold a word, in order."""
        text, place, passed = self._joined, 0, 0
        at = text.find(word) if self.texts else -1
        while at >= 0:
            place += text.count("\n", passed, at)
            yield place
            passed = text.find("\n", at)
            at = text.find(word, passed) if passed >= 0 else -1

    def holding_any(self, words: Iterable[str]) -> set[int]:
        """The places of the texts that hold one of these words."""
        return {place for word in words for place in self.holding(word)}

    def holding_most(self, words: Iterable[str], least: int) -> Iterator[int]:
        """The places of the texts that hold at least so many of these words, in no order; `least`: 1 or more."""
        rare_first = sorted(words, key=len, reverse=True)
        spare = len(rare_first) - least  # a text that lacks one more than these lacks too many
        for place in self.holding_any(rare_first[: spare + 1]) if spare >= 0 else ():
            text = self.texts[place]
            if sum(word in text for word in rare_first) >= least:
                yield place
