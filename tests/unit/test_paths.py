"""File names: no two ids share one, and none leads out of the data folder."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.context import Bucket
from memd.disk import path_parts
from memd.memory.store import paths

ID = st.one_of(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=256).filter(lambda text: len(text.encode()) <= 256),
    st.text("aAbB./\\~%é*:-_ CON{}0", min_size=1, max_size=12),
)
NASTY = [
    "..", ".", "/etc/passwd", "a/b", "a\\b", "CON", "con", "con.txt", "nul", "Bob", "bob", "BOB", "*", "{x}", "~", "%",
    "%2e", "a.", ".a", "-rf", "é", unicodedata.normalize("NFD", "é"), "线程", "a b", " ", "a%2fb", "COM1", "com1.",
    "agents", "memory.json", "x" * 120, "x" * 121, "X" * 120, "é" * 128, "~" + "0" * 64,
]  # fmt: skip


@pytest.mark.parametrize("name", ["alice", "alice@example.com", "user-42_a", "bob+test@mail.example.org", "0"])
def test_ordinary_ids_stay_readable(name: str) -> None:
    """Lower-case ids and e-mail addresses are their own file names."""
    assert path_parts.encode(name) == name


def test_no_two_nasty_ids_share_a_file_even_without_case_and_forms() -> None:
    """Names stay apart on file systems that fold case or normalise Unicode."""
    parts = [unicodedata.normalize("NFC", path_parts.encode(name)).casefold() for name in NASTY]

    assert len(set(parts)) == len(NASTY)


@given(ID, ID)
def test_file_names_are_injective_and_safe(one: str, other: str) -> None:
    """Different ids have different names, also without case; a name is one plain part of at most 120 bytes."""
    part = path_parts.encode(one)

    assert (path_parts.encode(one).casefold() == path_parts.encode(other).casefold()) == (one == other)
    assert re.fullmatch(r"~[0-9a-f]{64}|[a-z0-9._@+%-]{1,120}", part)
    assert part[0] not in ".-"
    assert part[-1] != "."
    assert not re.match(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", part)


@given(ID)
def test_file_names_are_reversible_when_short(name: str) -> None:
    """An unhashed name gives its id back; a hashed one does not pretend to."""
    part = path_parts.encode(name)

    assert path_parts.decode(part) == (None if part.startswith("~") else name)


@given(st.text(max_size=40))
def test_only_names_that_encode_makes_are_decoded(part: str) -> None:
    """Folders that somebody else made are not taken for users."""
    name = path_parts.decode(part)

    assert name is None or path_parts.encode(name) == part


def test_names_longer_than_120_bytes_are_hashed() -> None:
    """The limit is on the encoded form."""
    assert path_parts.encode("x" * 120) == "x" * 120
    assert path_parts.encode("x" * 121).startswith("~")
    assert path_parts.encode("X" * 40) == "%58" * 40
    assert path_parts.encode("X" * 41).startswith("~")


@given(ID, ID | st.just(""))
def test_every_bucket_stays_inside_the_data_folder(user_id: str, agent: str) -> None:
    """Nothing in an id leads anywhere else, and each bucket has a folder of its own."""
    root = Path("/data")
    folder = paths.folder(root, Bucket(user_id, agent), shared=False)

    assert folder.parent in {root / "users", root / "users" / path_parts.encode(user_id) / "agents"}
    assert ".." not in folder.parts
    assert (folder == paths.folder(root, Bucket(user_id, ""), shared=False)) == (agent == "")
