"""The embedder: a server with OpenAI's embeddings API, which turns texts into vectors of length 1. Time is bounded.

Whoever asks waits in its own thread, for as long as it says; the request itself runs in a thread of its own, which ends
with the process. After a failure nobody asks for a while: an embedder that is away delays one search, not all of them.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from memd.config import VectorsSettings
from memd.errors import ConfigError, EmbedderFailed, EmbedderRefused

PAUSE_S, PAUSE_MAX_S = 5.0, 60.0
"""Seconds in which nobody asks after a failure; doubled with each further one."""

QUERIES_KEPT = 256
"""Queries whose vectors are kept, the least recently used evicted."""

MAX_CHARS = 8_000
"""Characters of a text that are embedded: its beginning. Usual models read 8,000 tokens, some 512."""


def headers(settings: VectorsSettings) -> dict[str, str]:
    """The headers of each request. Raises ConfigError for a key that no header can carry."""
    found = {"content-type": "application/json", "accept-encoding": "identity"}
    if settings.api_key is None:
        return found
    key = settings.api_key.reveal().strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError("setting vectors.api_key contains a character that no HTTP header can carry")
    return {**found, "authorization": f"Bearer {key}"}


def embedder_name(settings: VectorsSettings) -> bytes:
    """Names what makes the vectors: of another model, or another length, they cannot be compared."""
    return hashlib.sha256(f"{settings.model}\0{settings.dimensions or ''}\0{MAX_CHARS}".encode()).digest()[:16]


class Embedding:
    """Asks the embedder. Thread-safe, also in forked children."""

    _paused_until: float
    _failures: int
    _code: str

    def __init__(self, settings: VectorsSettings) -> None:
        """Nothing is asked yet. Raises ConfigError without an address, and for a key that no header can carry."""
        if settings.url is None:
            raise ConfigError("setting vectors.url is missing: the address of a server with OpenAI's embeddings API")
        self._settings = settings
        self._headers = headers(settings)
        self.name = embedder_name(settings)
        self._reset()

    def query(self, text: str) -> Future[bytes]:
        """Ask for the vector of a query, which is kept. The future fails with EmbedderFailed."""
        self._check_process()
        with self._lock:
            kept = self._kept.get(text)
            if kept is not None:
                self._kept.move_to_end(text)
                return kept
            asked: Future[bytes] = Future()
            self._kept[text] = asked
            while len(self._kept) > QUERIES_KEPT:
                self._kept.popitem(last=False)
        self._start(lambda: self._answer(text, asked))
        return asked

    def of_query(self, asked: Future[bytes]) -> bytes:
        """The vector of a query, if it comes within `vectors.query_s`. Raises EmbedderFailed."""
        try:
            return asked.result(self._settings.query_s)
        except TimeoutError:
            error = EmbedderFailed("E_EMBEDDER_TIMEOUT: the embedder did not answer in time")
            self._failed()
            raise error from None

    def of_texts(self, texts: Sequence[str], *, again: bool = False) -> list[bytes]:
        """The vector of each text, by one request. `again`: also right after a failure.

        Raises EmbedderFailed, EmbedderRefused.
        """
        self._check_process()
        return self._asked(texts, self._settings.batch_s, again=again)

    def _answer(self, text: str, asked: Future[bytes]) -> None:
        try:
            (vector,) = self._asked([text], self._settings.query_s)
        except EmbedderFailed as error:
            with self._lock:
                self._kept.pop(text, None)
            asked.set_exception(error)
        except BaseException as error:  # a bug of ours: the search must not wait for its end
            with self._lock:
                self._kept.pop(text, None)
            asked.set_exception(EmbedderFailed(f"E_EMBEDDER_CALL: the call failed ({type(error).__name__})"))
            raise
        else:
            asked.set_result(vector)

    def _asked(self, texts: Sequence[str], deadline_s: float, *, again: bool = False) -> list[bytes]:
        with self._lock:
            is_paused = time.monotonic() < self._paused_until
            if is_paused and not again:
                raise EmbedderFailed(f"{self._code}: the embedder has just failed, and is not asked for a while")
            if is_first := self._failures > 0 and not is_paused:  # it alone finds out whether the embedder is back
                self._paused_until = time.monotonic() + deadline_s
        try:
            vectors = self._calls.embed(self._body(texts), len(texts), deadline_s)
        except EmbedderRefused:  # it answers, and blames the texts
            self._answered()
            raise
        except EmbedderFailed as error:
            self._failed(str(error).partition(":")[0], is_first=is_first)
            raise
        self._answered()
        return vectors

    def _answered(self) -> None:
        with self._lock:
            self._failures, self._paused_until = 0, 0.0

    def _body(self, texts: Sequence[str]) -> dict[str, Any]:
        """A request for the vectors of texts; lone surrogates, which JSON cannot have, are replaced."""
        shorter = {} if self._settings.dimensions is None else {"dimensions": self._settings.dimensions}
        wanted = [text[:MAX_CHARS].encode(errors="replace").decode() for text in texts]
        return {"model": self._settings.model, "input": wanted, "encoding_format": "float", **shorter}

    def _failed(self, code: str = "E_EMBEDDER_TIMEOUT", *, is_first: bool = False) -> None:
        """Begin a pause. Of calls that fail together only one counts. `is_first`: of those after a pause."""
        with self._lock:
            pause_s = min(PAUSE_MAX_S, PAUSE_S * 2.0 ** min(self._failures, 10))
            if is_first or time.monotonic() >= self._paused_until:
                self._failures += 1
                self._paused_until = time.monotonic() + pause_s
            self._code = code

    @staticmethod
    def _start(work: Any) -> None:
        threading.Thread(target=work, name="embedder", daemon=True).start()

    def _check_process(self) -> None:
        """A forked child uses no connection of its parent."""
        if self._pid != os.getpid():
            self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Future[bytes]] = OrderedDict()
        self._failures, self._paused_until, self._code = 0, 0.0, ""
        from memd.recall.embedding_calls import EmbeddingCalls  # noqa: PLC0415  (the HTTP client: 80 ms, off by default)

        self._calls = EmbeddingCalls(self._settings.url or "", self._headers)
