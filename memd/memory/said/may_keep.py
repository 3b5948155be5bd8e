"""May keep: which messages may be kept, and which may prove a fact. A pure function.

A user's wish to forget, or off the record, is not kept, nor is the reply to it. A wish that points back takes the
user's turn before it along, with its reply; one that names its matter takes the turns along that hold it, and forbids
no new fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from memd.context import Message
from memd.memory.said.matter import Matter, nearest
from memd.memory.said.wishes import AskedNot, Why, wish_of

Before = Literal["", "turn", "thread", "everything"]
"""What a wish takes along of the time before these messages: the thread's last turns of the user with their replies,
all its turns, or all that is known of the user. They are stored already, if anywhere."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What may be kept of the messages of one thread, in their order."""

    kept: tuple[Message, ...]
    not_kept: Mapping[str, Why]
    """The identities of the others, and why."""

    no_quotes: frozenset[str]
    """The identities of the messages that must prove nothing; all of them are among `not_kept`."""

    pointed: frozenset[str] = frozenset()
    """Those of them that a wish means as a whole; of the others it means what holds its matter."""

    asking: frozenset[str] = frozenset()
    """Those of them that ask to forget something: the extractor reads them, for what they mean, and nothing else."""

    rests: Mapping[str, str] = field(default_factory=dict)
    """Of those with sentences before what is off the record, or behind it with what to keep all the same: these
    sentences, which may be read and quoted."""

    before: Before = ""

    count: int = 0
    """How many turns `before` means."""

    matters: tuple[Matter, ...] = ()
    """What the wishes name: what is stored of it goes too."""

    unseen: tuple[Matter, ...] = ()
    """Those of which no message here has a word: the stored turn of this thread that shares most goes, if none holds
    it."""

    is_off: bool = False
    """Whether what comes next in the thread is not to be kept either ("incognito on")."""


class _Draft:
    """The decisions on the messages of a thread in the making."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.not_kept: dict[str, Why] = {}
        self.no_quotes: set[str] = set()
        self.pointed: set[str] = set()
        self.asking: set[str] = set()
        self.rests: dict[str, str] = {}
        self.before: Before = ""
        self.count = 0
        self.matters: dict[Matter, bool] = {}
        """Each with whether any message shares a word of it."""

    def drop(self, places: Iterable[int], why: Why, *, quotable: bool = False, whole: bool = True) -> None:
        """These messages are not kept. `whole`: not only because they hold what a wish names."""
        for place in places:
            identity = self.messages[place].identity
            self.not_kept[identity] = why
            self.rests.pop(identity, None)
            self.asking.discard(identity)
            if not quotable:
                self.no_quotes.add(identity)
                self.pointed.update([identity] if whole else [])

    def turn(self, place: int) -> range:
        """A turn of the user with the replies to it."""
        return range(place, next(self.users(range(place + 1, len(self.messages))), len(self.messages)))

    def users(self, places: range) -> Iterator[int]:
        """Those of these places where the user speaks."""
        return (place for place in places if self.messages[place].role == "user")

    def reach_back(self, place: int, count: int, why: Why) -> None:
        """The user's last turns before a place go; those that are not among the messages are stored."""
        turns = list(self.users(range(place)))[-count:]
        for turn in turns:
            self.drop(self.turn(turn), why)
        if len(turns) < count and self.before not in ("thread", "everything"):
            self.before, self.count = "turn", max(self.count, count - len(turns))

    def reach_matters(self, place: int, wish: AskedNot) -> None:
        """The turns before a place that hold what the wish names; if none does, the one that shares most of it."""
        missed = False
        for matter in wish.matters:
            held = [index for index in range(place) if matter.held_by(self.messages[index].content)]
            if not held:
                texts = ((index, self.messages[index].content) for index in self.users(range(place)))
                held = [index for index in [nearest(texts, [matter])] if index is not None]
            for index in held:
                turn = self.turn(index) if self.messages[index].role == "user" else [index]
                self.drop(turn, wish.why, whole=False)
            self.matters[matter] = self.matters.get(matter, False) or bool(held)
            missed = missed or not held
        if missed and wish.reach == "earlier":
            self.reach_back(place, 1, wish.why)

    def kept(self, *, is_off: bool) -> Kept:
        """The result."""
        return Kept(
            tuple(message for message in self.messages if message.identity not in self.not_kept),
            self.not_kept,
            frozenset(self.no_quotes),
            frozenset(self.pointed),
            frozenset(self.asking),
            self.rests,
            self.before,
            self.count,
            tuple(self.matters),
            tuple(matter for matter, seen in self.matters.items() if not seen),
            is_off,
        )


def may_keep(messages: Sequence[Message], off_from: int | None = None) -> Kept:
    """What may be kept of messages of one thread, oldest first. Never raises.

    `off_from`: the place from which on nothing is to be kept, because an earlier turn said so; None: from nowhere.
    """
    draft = _Draft(messages)
    is_off = False
    for place, message in enumerate(messages):
        is_off = is_off or place == off_from
        wish = _wish_of(message)
        if is_off or (wish is not None and wish.switch):
            draft.drop([place], "off_the_record")
        if wish is None:
            continue
        if wish.switch:
            draft.drop(draft.turn(place), "off_the_record")
            is_off = wish.switch == "on"
        else:
            _fulfil(draft, place, wish)
            if (
                is_off or message.name is not None
            ):  # nobody reads what is off the record, or what another one takes back
                draft.asking.discard(message.identity)
    return draft.kept(is_off=is_off)


def _wish_of(message: Message) -> AskedNot | None:
    """The wish in a message of the user; that of another speaker is about their own turn alone."""
    wish = wish_of(message.content) if message.role == "user" else None
    return wish if wish is None or message.name is None else AskedNot(wish.why, "turn")


def _fulfil(draft: _Draft, place: int, wish: AskedNot) -> None:
    """Drop what a wish is about, and the wish with the replies to it."""
    turn, end = draft.turn(place), len(draft.messages)
    draft.drop(turn, wish.why, quotable=not wish.own)
    if wish.own and wish.why == "forget_wish" and wish.reach == "turn":
        draft.asking.add(draft.messages[place].identity)
    if (wish.rest or wish.kept) and draft.messages[place].identity not in draft.asking:
        said = draft.messages[place].content
        parts = [said[: wish.rest].strip(), wish.kept]
        draft.rests[draft.messages[place].identity] = "\n".join(filter(None, parts))
    if wish.reach == "everything":
        draft.drop(range(place), wish.why)
        draft.before = "everything"
    elif wish.matters:
        draft.reach_matters(place, wish)
    elif wish.reach == "thread":
        draft.drop(range(end), wish.why)
        draft.before = draft.before or "thread"
    elif wish.reach == "earlier":
        draft.reach_back(place, wish.turns, wish.why)
    elif wish.reach == "next" and turn.stop < end:
        draft.drop(draft.turn(turn.stop), wish.why)
