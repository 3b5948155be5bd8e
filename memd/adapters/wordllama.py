"""A local embedder for `recall.embedder: memd.adapters.wordllama.embed`: static vectors of the package wordllama.

Its wheel carries weights and tokenizer; they are read from its files, so nothing asks a network. It needs wordllama and
tokenizers besides the extra `embeddings`; English, mostly.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Tokenizer: Any = importlib.import_module("tokenizers").Tokenizer
_SPEC = importlib.util.find_spec("wordllama")
if _SPEC is None or _SPEC.origin is None:
    raise ImportError("wordllama is not installed")
FOLDER = Path(_SPEC.origin).parent
"""The package, whose code is not run: its own loader asks a network."""

WEIGHTS, TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
MAX_CHARS = 4_000
"""Characters of a text that are read: its beginning."""


def embed(text: str) -> Sequence[float]:
    """The mean of the vectors of a text's tokens."""
    tokenizer, vectors = _model()
    ids = tokenizer.encode(text[:MAX_CHARS], add_special_tokens=False).ids
    mean: Sequence[float] = vectors[ids].mean(axis=0) if ids else [0.0] * vectors.shape[1]
    return mean


@cache
def _model() -> tuple[Any, Any]:
    """The tokenizer, and a vector for each token: 256 numbers of 16 bits, 16 MB in all."""
    data = (FOLDER / WEIGHTS).read_bytes()
    # The format: the length of the header, the header as JSON, the numbers.
    begin = 8 + int.from_bytes(data[:8], "little")
    (tensor,) = (value for name, value in json.loads(data[8:begin]).items() if name != "__metadata__")
    kind = {"F16": np.float16, "F32": np.float32}[tensor["dtype"]]
    first, last = tensor["data_offsets"]
    vectors = np.frombuffer(data[begin + first : begin + last], kind).reshape(tensor["shape"])
    return Tokenizer.from_file(str(FOLDER / TOKENIZER)), vectors.astype(np.float32)
