"""The alternative to memd's search: SQLite's FTS5 over one document, in memory."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

_HAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_WORD = re.compile(r"\w+")


def spaced(text: str) -> str:
    """The text, with single characters and pairs of them as words in scripts without spaces."""

    def expanded(run: re.Match[str]) -> str:
        chars = run[0]
        return " " + " ".join([*chars, *(chars[at : at + 2] for at in range(len(chars) - 1))]) + " "

    return _HAN.sub(expanded, text)


class Fts5:
    """Texts in an FTS5 table with Porter stemming, ranked by its BM25."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute("CREATE VIRTUAL TABLE facts USING fts5(content, tokenize='porter unicode61')")
        rows = [(place, spaced(text)) for place, text in enumerate(texts)]
        self._db.executemany("INSERT INTO facts(rowid, content) VALUES (?, ?)", rows)

    def search(self, query: str, limit: int) -> list[int]:
        """The positions of the texts that contain any of the words, best first."""
        words = dict.fromkeys(_WORD.findall(spaced(query)))
        if not words:
            return []
        match = " OR ".join(f'"{word}"' for word in words)
        rows = self._db.execute("SELECT rowid FROM facts WHERE facts MATCH ? ORDER BY rank LIMIT ?", (match, limit))
        return [place for (place,) in rows]
