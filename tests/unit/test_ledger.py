"""The ledger: the messages that a document has already taken in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memd.context import Bucket, Message, identify
from memd.memory import ledger
from memd.memory.document import Document, empty_document

THREADS = st.sampled_from(["t1", "t2", "t3", "线程"])
IDENTITIES = st.lists(st.integers(0, 30).map(lambda n: f"i{n:036}"), max_size=12)


def holding(thread_id: str, messages: tuple[Message, ...]) -> Document:
    """A document that has taken these messages in."""
    entries = ledger.taken({}, thread_id, [message.identity for message in messages], 100)
    return {**empty_document(Bucket("alice")), "ledger": entries}


def test_a_message_taken_in_is_known() -> None:
    """Messages in the ledger are not new; the others are, in order."""
    turns = identify("t", [Message("user", "one"), Message("assistant", "two"), Message("user", "three")])

    assert ledger.unknown(holding("t", turns[:2]), "t", turns) == turns[2:]


def test_the_same_words_in_another_thread_are_new() -> None:
    """A thread's identities say nothing about another thread."""
    here, there = identify("t", [Message("user", "hello")]), identify("u", [Message("user", "hello")])

    assert ledger.unknown(holding("t", here), "u", there) == there


def test_a_message_without_predecessor_matches_the_same_words_said_later() -> None:
    """A single turn pushed again without its history is known, though it was taken in with a predecessor."""
    whole = identify("t", [Message("user", "你好"), Message("assistant", "你好！"), Message("user", "我叫小林")])
    alone = identify("t", [Message("user", "我叫小林")])

    assert ledger.unknown(holding("t", whole), "t", alone) == ()


def test_a_message_with_a_predecessor_is_not_taken_for_a_single_one() -> None:
    """The same words after another message are new, as people say "yes" more than once."""
    alone = identify("t", [Message("user", "yes")])
    later = identify("t", [Message("assistant", "Tea?"), Message("user", "yes")])

    assert ledger.unknown(holding("t", alone), "t", later) == later


def test_a_message_given_twice_is_new_once() -> None:
    """Within one call each identity comes back once."""
    turn = identify("t", [Message("user", "hello", id="1")])

    assert ledger.unknown(empty_document(Bucket("alice")), "t", turn * 3) == turn


def test_the_oldest_thread_makes_room_as_a_whole() -> None:
    """Above the cap the thread that was touched longest ago goes; touching one makes it the youngest."""
    entries = ledger.taken({"a": ["1", "2"], "b": ["3"], "c": ["4"]}, "a", ["5"], 4)

    assert entries == {"c": ["4"], "a": ["1", "2", "5"]}
    assert list(entries) == ["c", "a"]


def test_a_thread_that_is_too_long_alone_loses_its_oldest() -> None:
    """The thread being written is never evicted whole."""
    assert ledger.taken({"a": ["1", "2", "3"]}, "a", ["4", "5"], 3) == {"a": ["3", "4", "5"]}


def test_two_users_of_a_shared_store_have_threads_of_their_own() -> None:
    """Equal thread and message ids: what one user said does not make the other's message known."""
    turn = identify("t", [Message("user", "hello", id="1")])
    ana, bob = (ledger.name_of("t", user, shared=True) for user in ("ana", "bob"))

    assert ledger.unknown(holding(ana, turn), ana, turn) == ()
    assert ledger.unknown(holding(ana, turn), bob, turn) == turn


def test_what_an_older_version_recorded_of_a_shared_store_is_known() -> None:
    """It recorded the plain thread, of which nobody can say who used it."""
    turn = identify("t", [Message("user", "hello", id="1")])

    assert ledger.unknown(holding("t", turn), ledger.name_of("t", "ana", shared=True), turn) == ()
    assert ledger.name_of("t", "ana", shared=False) == "t"


def test_a_ledger_moves_between_stores_of_both_kinds() -> None:
    """An import gives a user's threads the names of the store, and leaves out those of other users."""
    ana, bob = (ledger.name_of("t", user, shared=True) for user in ("ana", "bob"))

    assert ledger.renamed({"t": ["1"]}, "ana", shared=True) == {ana: ["1"]}
    assert ledger.renamed({ana: ["1"], bob: ["2"]}, "ana", shared=False) == {"t": ["1"]}
    assert ledger.renamed({ana: ["1"], bob: ["2"]}, "ana", shared=True) == {ana: ["1"]}
    assert ledger.renamed({"t": ["1"]}, "ana", shared=False) == {"t": ["1"]}


@given(pushes=st.lists(st.tuples(THREADS, IDENTITIES), max_size=25), cap=st.integers(1, 40))
def test_the_ledger_stays_within_its_cap_and_holds_what_came_last(
    pushes: list[tuple[str, list[str]]], cap: int
) -> None:
    """Whatever comes, at most `cap` identities are held, each once a thread, and the last push's newest are there."""
    entries: ledger.Ledger = {}
    for thread_id, identities in pushes:
        before = {name: list(listed) for name, listed in entries.items()}
        after = ledger.taken(entries, thread_id, identities, cap)

        assert entries == before
        assert sum(map(len, after.values())) <= cap
        assert all(len(set(listed)) == len(listed) for listed in after.values())
        assert list(after)[-1] == thread_id
        fresh = [i for i in dict.fromkeys(identities) if i not in before.get(thread_id, [])]
        assert after[thread_id][-len(fresh) :] == fresh[-cap:] if fresh else True
        assert all(after[name] == before[name] for name in after if name != thread_id)
        entries = after
