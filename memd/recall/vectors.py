"""Vectors: search by meaning, where an app names a function that turns a text into a vector.

The app provides the function (`recall.embedder`, a dotted path): a local model, an API, a table. It is called again
only for texts whose vector is no longer cached. `ranking` adds the cosines to the scores of the words.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from memd.config import dotted
from memd.errors import ConfigError, EmbedderFailed

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

VECTORS_KEPT = 20_000
"""Vectors cached, the least recently used evicted: 30 MB at 384 dimensions."""


class Embedder(Protocol):
    """Any function from a text to a vector, of the same length each time. Called from any thread."""

    def __call__(self, text: str, /) -> Sequence[float]:
        """The vector of a text."""
        ...


def load_embedder(name: str) -> Embedder:
    """The function that `recall.embedder` names. Raises ConfigError when it cannot be loaded or is not a function."""
    loaded = dotted.load("recall.embedder", name)
    if not callable(loaded):
        raise ConfigError("setting recall.embedder: it names something that is not a function")
    embedder: Embedder = loaded
    return embedder


def load_numpy(setting: str) -> ModuleType:
    """The module numpy, for a setting that needs it. Raises ConfigError without the extra `embeddings`."""
    try:
        import numpy  # noqa: PLC0415  (part of the extra; other users do not pay for its import)
    except ImportError:
        raise ConfigError(f"setting {setting} needs memd's extra `embeddings` (numpy)") from None
    return numpy


class Vectors:
    """Caches the vectors of texts. Thread-safe. Raises ConfigError without the extra `embeddings`."""

    def __init__(self, embed: Embedder) -> None:
        self._numpy = load_numpy("recall.embedder")
        self._embed = embed
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, NDArray[numpy.float32]] = OrderedDict()

    def cosines(self, query: str, texts: Sequence[str]) -> list[float]:
        """The cosine of each text to the query; 0 for a zero vector. Raises EmbedderFailed."""
        if not texts:
            return []
        np = self._numpy
        target = self._vector(query)
        rows = [self._vector(text) for text in texts]
        if any(row.shape != target.shape for row in rows):
            raise EmbedderFailed("recall.embedder returns vectors of different lengths")
        found: list[float] = (np.stack(rows) @ target).tolist()
        return found

    def _vector(self, text: str) -> NDArray[numpy.float32]:
        with self._lock:
            kept = self._kept.get(text)
            if kept is not None:
                self._kept.move_to_end(text)
                return kept
        vector = self._embedded(text)
        with self._lock:
            self._kept[text] = vector
            while len(self._kept) > VECTORS_KEPT:
                self._kept.popitem(last=False)
        return vector

    def _embedded(self, text: str) -> NDArray[numpy.float32]:
        """A new vector, normalised; a zero vector stays zero and is near nothing."""
        np = self._numpy
        try:
            vector = np.array(self._embed(text), dtype=np.float32)
        except Exception as error:  # noqa: BLE001  (the app's own code; the search fails with its type)
            raise EmbedderFailed(f"recall.embedder failed ({type(error).__name__})") from None
        if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
            raise EmbedderFailed("recall.embedder must return one vector of finite numbers")
        length = float(np.linalg.norm(vector))
        unit: NDArray[numpy.float32] = vector / length if length > 0 else vector
        return unit
