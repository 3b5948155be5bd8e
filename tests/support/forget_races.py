"""Forgettings raced with everything else: pushes by both doors, workers, flushes, letters, kills, a server that goes.

One world is one server and a few users; a seed decides all steps. What was acknowledged before a wish must be gone in
the end, what was acknowledged after it must be stored once, and nobody else may notice. As a command it tries new
seeds for two minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from memd.client import Memd
from memd.errors import MemdError
from memd.forget import Forgetting
from memd.inbox import library, verbs
from memd.inbox.connection import connect, inbox_url, send
from memd.inbox.raw_door import RawDoor
from memd.inbox.workers import died
from memd.memory.store.json_store import JsonStore
from memd.memory.store.protocol import Wish
from memd.ops import server
from memd.workers import drain
from support import make_settings, wait_for
from support.inbox_view import look
from support.stepping import SteppingClient, SteppingStore, Steps

USERS = ("ana", "小林", "eve")
BYSTANDER = "bob"
WORKER = "races:1:abc"


@dataclass(slots=True)
class Said:
    """One message: what must become of it, and the receipt of the push that brought it first."""

    user: str
    thread: str
    number: int
    fate: str = "stored"
    """stored, gone, or either (nobody can say whether it came before the wish)."""

    receipt: str = ""
    raw: bool = False

    @property
    def turn(self) -> dict[str, str]:
        """As a producer sends it."""
        return {"role": "user", "content": f"I like tea number {self.number}.", "id": f"u{self.number}"}


class World:
    """One data folder with its server, and what was said there."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)  # noqa: S311  (a repeatable history)
        self.embedded = make_settings(folder, None, server__appendfsync="always")
        self.settings = make_settings(
            folder,
            inbox_url(self.embedded),  # as a server of somebody else's, whose file nobody rewrites after each wish
            store__class="support.stepping.SteppingStore",
            drain__linger_s=0.01,
            drain__backoff_s=0.01,
            drain__backoff_max_s=0.02,
            drain__max_attempts=100,
            drain__concurrency=4,
        )
        self.said: list[Said] = []
        self.races = 0
        self.raw_looked = False
        self.client = connect(self.settings)
        self.app = Memd(self.settings)
        self.door = RawDoor(self.settings, self.client)
        drain.prepare()  # as a worker does, before it forks
        self.start()
        library.install(self.client, self.settings)
        store = JsonStore(folder, self.settings.store)
        library.bind_store(self.client, store)
        self.tombstones = store.tombstones

    # --- the parts ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the server; the scheduler may have been there all the time."""
        self.process = server.start(self.embedded)
        if self.rng.random() < 0.5:
            self.door = RawDoor(self.settings, self.client)
        self.raw_looked = False

    def stop(self) -> None:
        """Kill the server; what it acknowledged is in its file."""
        self.process.kill()
        self.process.wait()

    def child(self, work: Callable[[], object], steps: int = -1) -> bool:
        """Work in a forked child that dies at a step; True: it came to its end."""
        pid = os.fork()
        if pid == 0:
            Steps.left = steps
            with suppress(MemdError):
                work()
            os._exit(0)
        return os.waitpid(pid, 0)[1] == 0

    def forgetting(self) -> Forgetting:
        """With connections and a store of its own, for a child."""
        client = SteppingClient.from_url(inbox_url(self.settings), retry=None)
        return Forgetting(self.settings, client, SteppingStore(self.settings.data_dir, self.settings.store))

    def drain(self, steps: int = -1) -> None:
        """A worker's drain, until nothing is due or it dies; then its claims are released, as a supervisor does."""
        ended = self.child(lambda: asyncio.run(drain.Drain(self.settings, WORKER).run()), steps)
        if not ended:
            send(self.client, died(WORKER))

    # --- what happens ------------------------------------------------------------------------------------------------

    def push(self) -> None:
        """Somebody says something new."""
        self.say(self.rng.choice((*USERS, BYSTANDER)), raw=self.rng.random() < 0.4, take_in=self.rng.random() < 0.5)

    def say(self, user: str, *, raw: bool, take_in: bool) -> None:
        """A user says something new, alone or with the window before it, by one of the doors."""
        said = Said(user, f"{user}-{self.rng.randrange(2)}", len(self.said))
        window = [one for one in self.said if one.thread == said.thread][-self.rng.randrange(4) or len(self.said) :]
        now = self.rng.random() < 0.7
        push = {"thread_id": said.thread, "user_id": user, "now": now, "messages": [m.turn for m in (*window, said)]}
        said.raw = raw
        doubtful = raw and not self.raw_looked and user in {wish.user_id for wish in self.tombstones.unfinished()}
        if raw:
            self.client.rpush(verbs.RAW, orjson.dumps(push))
            if take_in:
                self.take_in()
        else:
            receipt = self.app.push_json(orjson.dumps(push))
            said.receipt = receipt.id or ""
        said.fate = "either" if doubtful else "stored"
        for one in window if doubtful else ():  # it may have come before the wish, and then they were said before, too
            one.fate = "either" if one.fate == "stored" else one.fate
        self.said.append(said)

    def take_in(self) -> None:
        """What the scheduler does, until the lists are empty."""
        while self.door.take_in():
            pass
        self.raw_looked = True

    def forget(self) -> None:
        """Forget somebody; maybe the server is away, maybe the process dies, maybe others push at the same time."""
        user = self.rng.choice(USERS)
        before, open_before = self.tombstones.generation(user), self.tombstones.unfinished()
        away = self.rng.random() < 0.4
        if away:
            self.say(user, raw=True, take_in=False)
        self.doubt_raw()
        if away:
            self.stop()
        known = [said for said in self.said if said.user == user]
        steps = self.rng.randrange(40) if self.rng.random() < 0.6 else -1
        ended = self.child(lambda: self.forgetting().run(Wish(user)), steps)
        self.races += 1
        opened = [wish for wish in self.tombstones.unfinished() if wish not in open_before]  # an older one takes less
        certain = ended or self.tombstones.generation(user) > before or any(wish.user_id == user for wish in opened)
        for said in known:
            if certain:
                said.fate = "gone"
            elif said.fate == "stored":
                said.fate = "either"
        if away:
            self.start()

    def race(self) -> None:
        """Forget while somebody pushes in another process: nobody can say what came first."""
        user = self.rng.choice(USERS)
        unfinished = self.doubt_raw()
        pid = os.fork()
        if pid == 0:
            with suppress(MemdError):
                self.forgetting().run(Wish(user))
            os._exit(0)
        count = len(self.said)
        known = [said for said in self.said if said.user == user]
        for _ in range(self.rng.randrange(1, 6)):
            self.push()
        os.waitpid(pid, 0)
        self.races += 1
        for said in known:
            said.fate = "gone"
        for said in self.said[count:]:
            if said.user == user or (said.raw and said.user in unfinished):
                said.fate = "either"

    def mend(self) -> None:
        """What a worker does when it starts; it may die."""
        self.doubt_raw()
        self.child(lambda: self.forgetting().mend(), self.rng.choice((-1, self.rng.randrange(30))))

    def doubt_raw(self) -> set[str]:
        """What lies in a raw list when the scheduler is not the next one to look: nobody can say since when.

        It matters to users with an unfinished wish, who are returned.
        """
        users = {wish.user_id for wish in self.tombstones.unfinished()}
        waiting = self.client.lrange(verbs.RAW, 0, -1)
        numbers = {int(turn["id"][1:]) for raw in waiting for turn in orjson.loads(raw)["messages"]}
        for said in self.said:
            if said.user in users and said.number in numbers and said.fate == "stored":
                said.fate = "either"
        return users

    def work(self) -> None:
        """A drain, to its end or to its death."""
        self.doubt_raw()
        self.drain(self.rng.choice((-1, self.rng.randrange(10))))

    def bury(self) -> None:
        """A claim gives up, whatever is in it."""
        for claim in send(self.client, verbs.claim(self.settings, 1, 0, WORKER, "model")).taken:
            send(self.client, verbs.bury(claim.id, "E_TEST", "E_TEST: for a test"))

    def vanish(self) -> None:
        """A worker claims and dies before it does anything; somebody notices later."""
        send(self.client, verbs.claim(self.settings, 2, 0, WORKER, "model"))
        if self.rng.random() < 0.5:
            send(self.client, died(WORKER))

    def run(self, steps: int) -> list[str]:
        """So many steps; then all is brought to its end. Returns what is wrong."""
        actions = (self.push,) * 12 + (self.forget,) * 4 + (self.race, self.take_in, self.mend, self.work) * 2
        for _ in range(steps):
            self.rng.choice((*actions, self.bury, self.vanish, self.flush))()
        self.settle()
        return self.wrong()

    def flush(self) -> None:
        """Everything is due now."""
        self.app.flush()

    def settle(self) -> None:
        """Scheduler, mending and workers come to the end of their work; letters are retried."""
        self.doubt_raw()
        self.child(lambda: self.forgetting().mend())
        self.take_in()
        send(self.client, died(WORKER))
        assert not self.tombstones.unfinished()
        self.dead_after = {turn for letter in self.app.dead() for turn in self._turns(letter.id)}
        self.app.retry(self.app.dead())

        def done() -> bool:
            self.app.flush()
            self.drain()
            status = self.app.status()
            return status.pending + status.claimed + status.dead == 0

        wait_for(done, "all has ended", 60)

    def _turns(self, letter: str) -> list[str]:
        content = self.app.dead_letter(letter)
        return [turn["id"] for turn in content.messages] if content else []

    # --- what must hold ----------------------------------------------------------------------------------------------

    def wrong(self) -> list[str]:
        """What is not as it must be."""
        found = []
        for user in (*USERS, BYSTANDER):
            facts = self.app.document(user)["facts"]
            numbers = [int(fact["content"].rstrip(".").rsplit(" ", 1)[1]) for fact in facts]
            text = str(self.app.document(user))
            for said in (said for said in self.said if said.user == user):
                times = numbers.count(said.number)
                if times != 1 and (said.fate == "stored" or times):
                    found.append(f"{user} {said.number} is stored {times} times, not once")
                named = f"'u{said.number}'" in text or f"u{said.number}" in self.dead_after
                if said.fate == "gone" and (times or named):
                    found.append(f"{user} {said.number} came back")
                found += self._wrong_receipt(said, times)
        left = [said.number for said in self.said if said.fate == "gone" and self._is_left(said)]
        found += [f"{number} is still in the inbox" for number in left]
        found += self._wrong_again()
        return found

    def _is_left(self, said: Said) -> bool:
        text = f"tea number {said.number}."
        return any(text in str(value) for value in look(self.client).keys.values())

    def _wrong_receipt(self, said: Said, times: int) -> list[str]:
        if said.fate != "stored" or not said.receipt or not times:
            return []
        outcome = self.app.receipt(said.receipt)
        # A letter of a claim that was stored but never acked is known when it is retried.
        good = outcome.state == "stored" or outcome.reason == "already_known"
        return [] if good else [f"the receipt of {said.user} {said.number} says {outcome.state}"]

    def _wrong_again(self) -> list[str]:
        """Pushed again, what is gone is forgotten, and what is stored is not."""
        found = []
        for said in self.said:
            push = {"thread_id": said.thread, "user_id": said.user, "messages": [said.turn]}
            reason = self.app.push_json(orjson.dumps(push)).reason
            if said.fate != "either" and (reason == "forgotten") != (said.fate == "gone"):
                found.append(f"{said.user} {said.number} is {said.fate}, and pushed again it is {reason}")
        return found


def play(seed: int, steps: int) -> tuple[int, list[str]]:
    """One world; how many forgettings were raced, and what went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="memd-"))
    try:
        world = World(seed, folder)
        try:
            wrong = world.run(steps)
            return world.races, wrong
        finally:
            world.stop()
            world.app.close()
            world.client.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def search(seconds: float, seed: int) -> int:
    """Play worlds of new seeds for so long; how many went wrong."""
    until, worlds, races, bad = time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < until:
        raced, wrong = play(seed + worlds, 80)
        worlds, races, bad = worlds + 1, races + raced, bad + bool(wrong)
        for line in wrong:
            print(f"seed {seed + worlds - 1}: {line}")  # noqa: T201  (a command)
    print(f"{races} forgettings raced in {worlds} worlds, {bad} worlds went wrong")  # noqa: T201  (a command)
    return bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    sys.exit(bool(search(parser.parse_args().seconds, int(time.time()))))
