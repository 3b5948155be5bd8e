"""Calls of OpenAI's embeddings API: one request, within its time and size, to vectors of length 1.

Importing this module imports httpx2.
"""

from __future__ import annotations

import logging
import math
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
import orjson

from memd.errors import EmbedderFailed, EmbedderRefused
from memd.extraction.transport import timeouts, tls

MAX_DIMENSIONS = 4_096
NUMBER_BYTES, REPLY_BYTES = 32, 65_536
"""Bytes of a reply for each number, and besides. A longer reply is refused."""

REFUSED = frozenset({400, 413, 422})
"""Statuses that blame the texts."""

logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs the address of each request


class EmbeddingCalls:
    """Connections to one embedder. Thread-safe."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """`url`: without /embeddings."""
        self._url = f"{url.rstrip('/')}/embeddings"
        self._headers = dict(headers)
        # A redirect would carry facts to a host that nobody configured.
        self._client = httpx2.Client(follow_redirects=False, verify=tls())

    def embed(self, body: dict[str, Any], count: int, deadline_s: float) -> list[bytes]:
        """The vectors that a request asks for. Raises EmbedderFailed, which repeats nothing that the server says."""
        try:
            return parsed(self._post(orjson.dumps(body), count, deadline_s), count)
        except httpx2.TimeoutException:
            raise EmbedderFailed("E_EMBEDDER_TIMEOUT: the embedder did not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError):
            raise EmbedderFailed("E_EMBEDDER_CONNECTION: the embedder cannot be reached") from None

    def _post(self, body: bytes, count: int, deadline_s: float) -> bytes:
        end = time.monotonic() + deadline_s
        most = REPLY_BYTES + count * MAX_DIMENSIONS * NUMBER_BYTES
        data = bytearray()
        with self._client.stream(
            "POST", self._url, content=body, headers=self._headers, timeout=timeouts(deadline_s)
        ) as response:
            if response.status_code != 200:
                raise _of_status(response.status_code)
            for chunk in response.iter_raw():
                data += chunk
                if len(data) > most:
                    raise EmbedderFailed("E_EMBEDDER_REPLY: the embedder's reply is too long")
                if time.monotonic() > end:
                    raise EmbedderFailed("E_EMBEDDER_TIMEOUT: the embedder did not answer in time")
        return bytes(data)


def parsed(data: bytes, count: int) -> list[bytes]:
    """The vectors in a reply, in the order of their texts. Raises EmbedderFailed."""
    try:
        rows = orjson.loads(data)["data"]
        ordered = sorted(rows, key=lambda row: row["index"])
        vectors = [packed(row["embedding"]) for row in ordered]
        whole = [row["index"] for row in ordered] == list(range(count)) and len({len(one) for one in vectors}) <= 1
    except (ValueError, KeyError, TypeError, OverflowError, struct.error):
        whole = False
    if not whole:
        raise EmbedderFailed("E_EMBEDDER_REPLY: the embedder's reply is not what the embeddings API describes")
    return vectors


def packed(numbers: Sequence[float]) -> bytes:
    """A vector of length 1 as half-precision floats. Raises ValueError, TypeError for what is no vector."""
    length = math.sqrt(math.fsum(number * number for number in numbers))
    if not (0 < length < math.inf) or len(numbers) > MAX_DIMENSIONS:
        raise ValueError
    return struct.pack(f"<{len(numbers)}e", *(number / length for number in numbers))


def _of_status(status: int) -> EmbedderFailed:
    if status in REFUSED:
        return EmbedderRefused(f"E_EMBEDDER_STATUS_{status}: the embedder refuses a text, or the settings of vectors")
    return EmbedderFailed(f"E_EMBEDDER_STATUS_{status}: the embedder answers with status {status}")
