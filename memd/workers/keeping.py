"""Keeping: what the said layer takes in with a commit, and what a commit hides, ends or takes out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from memd.config import Settings
from memd.memory import ledger, removed
from memd.memory.apply import Applied
from memd.memory.document import Document, archive_of, facts_of, said_file_of
from memd.memory.facts import by_id, content_of, id_of
from memd.memory.said.changes import Rewrite, SaidChange, rewrite
from memd.memory.said.echo import without_echo
from memd.memory.said.excerpts import judged
from memd.memory.said.marking import changed_facts, hidden_marks, over_marks
from memd.memory.said.matter import nearest
from memd.memory.said.may_keep import Kept
from memd.memory.said.removal import remove_turns
from memd.memory.said.taking import took_in, turn_hash, turns_of
from memd.memory.said.turns import NOTHING_SAID, Mark, Said, Turn, without
from memd.memory.store.protocol import Loaded
from memd.memory.store.said_reader import keeps_said
from memd.memory.to_forget import NO_WISH, ToForget
from memd.push.times import iso
from memd.workers.steps import Work


@dataclass(frozen=True, slots=True)
class Written:
    """What a commit keeps: its document, the change of the layer, and what is not kept, by reason."""

    document: Document
    said: SaidChange | None
    not_kept: dict[str, int]


class Keeping:
    """The said layer's part in the commit of one claim."""

    def __init__(self, settings: Settings, read: Callable[[Document], Said], thread: str) -> None:
        """`read`: the layer of a document, from its store. `thread`: its name in the ledger."""
        self._settings = settings
        self._read = read
        self._thread = thread

    def asked(self, work: Work, loaded: Loaded) -> ToForget:
        """What the messages ask to forget, with the stored turns that go. Raises StoreUnavailable.

        Only with a wish to forget it reads the layer.
        """
        kept = work.kept
        if not kept.not_kept:
            return NO_WISH
        said = self._said(work, loaded)
        gone = kept.no_quotes.union(self._stored(work, said))
        pointed = kept.pointed.union(pointed_at(kept, said, self._thread))
        unread = tuple(m for m in work.part.claim.messages if m.role == "user" and m.identity in kept.no_quotes)
        return ToForget(gone, kept.matters, unread, pointed, kept.asking, kept.before == "everything")

    def change(self, work: Work, loaded: Loaded, applied: Applied) -> Written:
        """What the commit writes of the layer and of its document. Raises StoreUnavailable.

        Only a commit that retires or forgets facts, or with a wish to forget, reads the layer.
        """
        if not keeps_said(self._settings):
            return Written(applied.document, None, work.not_kept)
        now = work.part.claim.now
        turns, counts = self._turns(work, loaded)
        if wishes := set(_turns_with_replies(turns, applied.unkept)):
            turns = [turn for turn in turns if turn.id not in wishes]
            counts["forget_wish"] = counts.get("forget_wish", 0) + len(wishes)
        if applied.forgotten:
            told = {turn.id for turn in remove_turns(Said(turns, [b""] * len(turns)), applied.forgotten).turns}
            turns = [turn for turn in turns if turn.id not in told]
        marks = hidden_marks(applied.hidden, iso(now))
        held = said_file_of(loaded.document)
        said: Said | None = None
        if held.file and (applied.retired or applied.forgotten or applied.everything or work.kept.not_kept):
            said = self._read(loaded.document)
            marks += self._over(said, work, loaded, applied, iso(now))
            if applied.everything:
                marks += hidden_marks((turn.id for turn in said.turns), iso(now))
            told = {turn.id for turn in remove_turns(said, applied.forgotten).turns}
            if gone := told | self._stored(work, self._said(work, loaded)):
                hashes = sorted(map(turn_hash, gone))
                buried = {**applied.document, "removed": removed.turns_buried(applied.document, hashes, iso(now))}
                return Written(buried, _without(said, gone, turns, marks), counts)
        marks = [mark for mark in marks if held.file or any(turn.id == mark.mark for turn in turns)]
        layer = self._settings.said
        change = took_in(held, lambda: said or self._read(loaded.document), turns, layer, now, marks)
        return Written(applied.document, change, counts)

    def _said(self, work: Work, loaded: Loaded) -> Said:
        """The layer that wishes take turns out of; nothing where there is no wish, or no layer."""
        if not work.kept.not_kept or not said_file_of(loaded.document).file or not keeps_said(self._settings):
            return NOTHING_SAID
        return self._read(loaded.document)

    def _stored(self, work: Work, said: Said) -> set[str]:
        """The identities of the stored turns that wishes take along."""
        return said.by_id.keys() & set(taken_along(work.kept, said, self._thread))

    def _turns(self, work: Work, loaded: Loaded) -> tuple[list[Turn], dict[str, int]]:
        """The turns to keep, with their excerpts, and the counts of those that are not kept."""
        new = ledger.fresh(loaded.known, work.said)
        contents = [content_of(fact) for fact in facts_of(loaded.document)]
        turns, counts = [], Counter(work.not_kept)
        for turn in turns_of(new, self._thread, removed.turn_hashes(loaded.document)):
            seen = judged(turn)
            kept = without_echo(seen, contents) if turn.role == "user" else seen
            if kept is None:
                counts["echo"] += 1
            else:
                turns.append(kept)
        return turns, dict(counts)

    def _over(self, said: Said, work: Work, loaded: Loaded, applied: Applied, now: str) -> list[Mark]:
        """Marks on the turns that say what this commit has ended."""
        ids = set(applied.retired)
        archive = (entry for entry in archive_of(applied.document) if id_of(entry) in ids)
        changes = list(changed_facts(by_id(loaded.document), archive, by_id(applied.document)))
        return over_marks(said, changes, now, max((message.said_at for message in work.new), default=""))


def taken_along(kept: Kept, said: Said, thread: str) -> Iterator[str]:
    """The identities of stored turns that wishes take along: by name, where they point back to, and by what they name.

    `thread`: the name of their thread in the ledger; what they name is looked for in all threads.
    """
    yield from kept.not_kept
    yield from pointed_at(kept, said, thread)
    turns = said.of_thread(thread)
    for matter in kept.matters:
        held = [turn for turn in said.turns if matter.held_by(turn.text)]
        if not held and matter in kept.unseen:
            texts = ((place, turn.text) for place, turn in enumerate(turns) if turn.role == "user")
            held = [turns[place] for place in [nearest(texts, [matter])] if place is not None]
        for turn in held:
            yield from _with_replies(said, turn)


def pointed_at(kept: Kept, said: Said, thread: str) -> Iterator[str]:
    """The identities of the stored turns that wishes point back to."""
    turns = said.of_thread(thread)
    if kept.before == "thread":
        yield from (turn.id for turn in turns)
    elif kept.before == "turn":
        rest = [turn for turn in turns if turn.id not in kept.not_kept]
        users = [place for place, turn in enumerate(rest) if turn.role == "user"][-kept.count :]
        yield from (turn.id for turn in (rest[users[0] :] if users else ()))


def _turns_with_replies(turns: Iterable[Turn], asking: Collection[str]) -> Iterator[str]:
    """The identities of these turns of the user, and of the replies to them."""
    goes = False
    for turn in turns:
        goes = turn.id in asking or (goes and turn.role != "user")
        if goes:
            yield turn.id


def _with_replies(said: Said, turn: Turn) -> Iterator[str]:
    """The identities of a turn and, if the user said it, of the replies to it."""
    yield turn.id
    if turn.role == "user":
        after = said.after(turn.id, len(said.turns))
        yield from (reply.id for reply in takewhile(lambda other: other.role != "user", after))


def _without(said: Said, gone: set[str], turns: Iterable[Turn], marks: Iterable[Mark]) -> Rewrite:
    """The layer without these turns, with the new ones."""
    return rewrite(without(said, gone), turns, [mark for mark in marks if mark.mark not in gone])
