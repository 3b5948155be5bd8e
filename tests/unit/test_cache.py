"""The reader's cache: bounded in bytes, whatever the number of documents and whatever was derived from them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from support.recall_support import document, fact, reader, write

from memd.client import Memd
from memd.context import Bucket

USERS, FACTS, CACHE_MB = 15, 150, 2
"""Unbounded these memories take about 6 MB; `python -m benchmarks.recall` measures 1,000 users with 500 facts."""


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with many memories, in English and Chinese."""
    folder = tmp_path_factory.mktemp("data")
    for number in range(USERS):
        quotes = [{"thread": "t", "message": "m", "quote": f"I like tea number {n} of {number}"} for n in range(FACTS)]
        facts = [
            fact(f"fact_{n}", f"User {number} likes tea number {n} 喜欢绿茶", evidence=[quote])
            for n, quote in enumerate(quotes)
        ]
        write(folder, document(*facts, bucket=Bucket(f"user{number}")))
    return folder


def inject(app: Memd, user: str) -> None:
    for budget in (500, 1_000, 2_000):
        app.inject(user, max_tokens=budget)


def search(app: Memd, user: str) -> None:
    app.search(user, "tea")


def both(app: Memd, user: str) -> None:
    app.inject(user, query="tea")
    search(app, user)
    inject(app, user)


@pytest.mark.long
@pytest.mark.parametrize("read", [inject, search, both])
def test_the_cache_takes_no_more_bytes_than_it_may(data_dir: Path, read: Callable[[Memd, str], None]) -> None:
    """Documents, indexes and blocks together; and it uses most of what it may."""
    app = reader(data_dir, recall__cache_mb=CACHE_MB)
    read(app, "nobody")
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(USERS):
            read(app, f"user{number}")
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert CACHE_MB / 2 < grown / 1e6 <= CACHE_MB


def test_the_least_recently_used_memory_goes_first(data_dir: Path) -> None:
    """A block that is asked for again and again stays at hand while many others come and go."""
    app = reader(data_dir, recall__cache_mb=CACHE_MB)
    at_hand = app._reader.at_hand
    for number in range(1, USERS):
        app.inject("user0")
        app.inject(f"user{number}")
    assert at_hand(Bucket("user0")) is not None
    assert at_hand(Bucket(f"user{USERS - 1}")) is not None
    assert at_hand(Bucket("user1")) is None


def test_a_memory_that_is_larger_than_the_cache_is_read_all_the_same(data_dir: Path) -> None:
    """It is not cached, and neither blocks nor results change."""
    facts = [fact(f"fact_{n}", f"Likes tea number {n} " + "x" * 1_000) for n in range(1_000)]
    write(data_dir, document(*facts, bucket=Bucket("large")))
    small, roomy = reader(data_dir, recall__cache_mb=1), reader(data_dir)
    assert small.inject("large") == roomy.inject("large")
    found = [[(hit.fact["content"], hit.score) for hit in app.search("large", "tea")] for app in (small, roomy)]
    assert found[0] == found[1]
    assert small._reader.at_hand(Bucket("large")) is None
