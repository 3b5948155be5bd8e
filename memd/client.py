"""What an app uses: push and forget, ask what became of it, and read the memory. Starts no loop and no thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import redis.asyncio
from msgspec.structs import replace

from memd import config
from memd.config import Settings
from memd.context import DEFAULT_AGENT, user_hash
from memd.inbox import budget, dead, verbs
from memd.inbox.connection import Call, connect, connect_async, send, send_async
from memd.inbox.dead import EVERY, Content, Letter, Which
from memd.inbox.receipt import UNKNOWN, Outcome, Receipt, explain, judge, parse_id, receipt
from memd.inbox.verbs import Merged, raw_lists
from memd.memory.hand.by_hand import AsyncByHand, ByHand
from memd.push.filtering import to_context
from memd.push.validation import RawPush, check_identifier, check_push, parse_push
from memd.recall.reading import AsyncReading, Reading

if TYPE_CHECKING:
    from memd.forget import Forgotten
    from memd.inbox.cost import Cost
    from memd.inbox.flush import FlushProgress, FlushResult
    from memd.inbox.status import Status
    from memd.push.signals import Patterns

Turns = Sequence[Mapping[str, Any]]


class _Door:
    """What both clients share: from what an app has in hand to the one command that is sent."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or config.load().settings

    @cached_property
    def _patterns(self) -> Patterns:
        from memd.push.signal_files import load_patterns  # noqa: PLC0415  (only an app that pushes needs them)

        return load_patterns(self.settings.signals.folder)

    def _prepared(
        self,
        messages: Turns,
        thread_id: str,
        user_id: str | None,
        agent_name: str,
        signals: Iterable[str],
        now: bool,
    ) -> tuple[Call[Merged], Callable[[Merged], Receipt]]:
        push: dict[str, Any] = {"thread_id": thread_id, "messages": list(messages), "now": now}
        if user_id is not None:
            push["user_id"] = user_id
        if agent_name:
            push["agent_name"] = agent_name
        if signals:
            push["signals"] = list(signals)
        return self._call(check_push(push, self.settings.client))

    def _prepared_json(self, raw: bytes, now: bool) -> tuple[Call[Merged], Callable[[Merged], Receipt]]:
        push = parse_push(raw, self.settings.client)
        return self._call(replace(push, now=True) if now else push)

    def _call(self, push: RawPush) -> tuple[Call[Merged], Callable[[Merged], Receipt]]:
        context = to_context(push, self._patterns)
        return verbs.push(context), lambda merged: receipt(merged, len(context.messages), context.dropped)


class Memd(_Door, ByHand, Reading):
    """The client for apps without an event loop. Thread-safe. Also a context manager.

    `settings`: as `memd.config.load` gives them; None reads config.yaml and the environment as the daemon does.
    Every method that talks to the server raises InboxUnavailable when it cannot be reached.
    """

    @cached_property
    def _client(self) -> redis.Redis:
        return connect(self.settings)

    def _server(self) -> redis.Redis:
        return self._client

    def push(
        self,
        messages: Turns,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_name: str = DEFAULT_AGENT,
        signals: Iterable[str] = (),
        now: bool = False,
    ) -> Receipt:
        """Push a conversation: one round trip. Sending the same again changes nothing but the due time.

        `messages`: the turns so far, or only the new ones (then each with an `id` or `created_at`), in the shapes of
        OpenAI, Anthropic or LangChain. `now`: due at once, for example before a summary throws messages away.
        Raises Rejected (nothing was stored), InboxFull, NotReady.
        """
        call, answer = self._prepared(messages, thread_id, user_id, agent_name, signals, now)
        return answer(send(self._client, call))

    def push_json(self, raw: bytes, *, now: bool = False) -> Receipt:
        """Push one JSON object in the format of the raw door (docs/wire.md). Raises as `push`."""
        call, answer = self._prepared_json(raw, now)
        return answer(send(self._client, call))

    def push_parsed(self, push: RawPush) -> Receipt:
        """Push what `memd.push.validation` has checked. Raises InboxFull, NotReady."""
        call, answer = self._call(push)
        return answer(send(self._client, call))

    def receipt(self, receipt_id: str, *, user_id: str | None = None) -> Outcome:
        """Where a push stands or how it ended. With `user_id` the push of anybody else is unknown.

        Raises Rejected when the id is not one.
        """
        key, gen, seq = parse_id(receipt_id)
        if user_id is not None and not send(self._client, verbs.holds(user_hash(user_id), key)):
            return UNKNOWN
        outcome = judge(send(self._client, verbs.standings([key]))[0], gen, seq)
        if outcome.state != "pending":
            return outcome
        return explain(outcome, send(self._client, budget.rationed([key]))[0])

    def flush(
        self,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        thread_id: str | None = None,
        wait: bool = False,
        timeout_s: float = 60.0,
        progress: Callable[[FlushProgress], None] | None = None,
    ) -> FlushResult:
        """Make pending keys due now: of one user, agent, thread, or all.

        With `wait`, until all that was accepted before has ended, or `timeout_s` is over, calling `progress`. A flush
        overrides no budget of tokens: when nothing but such keys is left that wait for longer, it ends at once.
        """
        from memd.inbox.flush import Flush, Selection  # noqa: PLC0415  (an app that only pushes starts without it)

        flush = Flush(self._client, raw_lists(self.settings), Selection(user_id, agent_name, thread_id))
        if wait:
            return flush.wait(timeout_s, progress)
        return flush.start()

    def forget(self, user_id: str, *, agent_name: str | None = None, dry_run: bool = False) -> Forgotten:
        """Forget all that is known of a user, or what one agent knows of them; what is on its way cannot come back.

        `dry_run`: only say what would be removed. With the server out of reach the documents go at once, and the
        answer's `complete` is False: a worker does the rest when it is back. Raises StoreUnavailable.
        """
        from memd.forget import Forgetting  # noqa: PLC0415  (what few apps ever do; the store comes with it)
        from memd.memory.store.json_store import open_store  # noqa: PLC0415  (as above)
        from memd.memory.store.tombstone import Wish  # noqa: PLC0415  (as above)

        wish = Wish(
            check_identifier("user_id", user_id),
            check_identifier("agent_name", agent_name) if agent_name else agent_name,
        )
        forgetting = Forgetting(self.settings, self._client, open_store(self.settings))
        return forgetting.preview(wish) if dry_run else forgetting.run(wish)

    def dead(self, which: Which = EVERY) -> list[Letter]:
        """The dead letters that are meant: `Which(ids=…, code=…, user_id=…)`; by default all. The oldest first."""
        return sorted(dead.letters(self._client, which), key=lambda letter: letter.died_at)

    def dead_letter(self, letter_id: str) -> Content | None:
        """One dead letter with what it carries; None when there is none."""
        return dead.content(self._client, letter_id)

    def retry(self, letters: Iterable[Letter]) -> int:
        """Make dead letters pending again, each message in its old place; answers how many were still there."""
        return dead.retry(self._client, letters)

    def drop(self, letters: Iterable[Letter]) -> int:
        """Throw dead letters away for good; answers how many were still there."""
        return dead.drop(self._client, letters)

    def status(self) -> Status:
        """The inbox, the workers and the server in figures."""
        from memd.inbox.status import read_status  # noqa: PLC0415  (as for flush)

        return read_status(self._client, self.settings)

    def cost(self) -> Cost:
        """What the model's calls have used, in tokens and money."""
        from memd.inbox.cost import read_cost  # noqa: PLC0415  (as for flush)

        return read_cost(self._client, self.settings)

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncMemd(_Door, AsyncByHand, AsyncReading):
    """The client for apps with an event loop; the methods of `Memd`, awaited. Also an async context manager.

    `push` and `receipt` are one round trip each; what reads files or waits runs in a thread. A cancelled push may or
    may not have arrived: send it again, it merges.
    """

    @cached_property
    def _client(self) -> redis.asyncio.Redis:
        return connect_async(self.settings)

    @cached_property
    def _sync(self) -> Memd:
        return Memd(self.settings)

    def _reading(self) -> Memd:
        return self._sync

    async def push(
        self,
        messages: Turns,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_name: str = DEFAULT_AGENT,
        signals: Iterable[str] = (),
        now: bool = False,
    ) -> Receipt:
        """As `Memd.push`."""
        call, answer = self._prepared(messages, thread_id, user_id, agent_name, signals, now)
        return answer(await send_async(self._client, call))

    async def push_json(self, raw: bytes, *, now: bool = False) -> Receipt:
        """As `Memd.push_json`."""
        call, answer = self._prepared_json(raw, now)
        return answer(await send_async(self._client, call))

    async def receipt(self, receipt_id: str, *, user_id: str | None = None) -> Outcome:
        """As `Memd.receipt`."""
        key, gen, seq = parse_id(receipt_id)
        if user_id is not None and not await send_async(self._client, verbs.holds(user_hash(user_id), key)):
            return UNKNOWN
        outcome = judge((await send_async(self._client, verbs.standings([key])))[0], gen, seq)
        if outcome.state != "pending":
            return outcome
        return explain(outcome, (await send_async(self._client, budget.rationed([key])))[0])

    async def flush(
        self,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        thread_id: str | None = None,
        wait: bool = False,
        timeout_s: float = 60.0,
    ) -> FlushResult:
        """As `Memd.flush`."""
        return await asyncio.to_thread(
            self._sync.flush,
            user_id=user_id, agent_name=agent_name, thread_id=thread_id, wait=wait, timeout_s=timeout_s,
        )  # fmt: skip

    async def forget(self, user_id: str, *, agent_name: str | None = None, dry_run: bool = False) -> Forgotten:
        """As `Memd.forget`."""
        return await asyncio.to_thread(self._sync.forget, user_id, agent_name=agent_name, dry_run=dry_run)

    async def dead(self, which: Which = EVERY) -> list[Letter]:
        """As `Memd.dead`."""
        return await asyncio.to_thread(self._sync.dead, which)

    async def dead_letter(self, letter_id: str) -> Content | None:
        """As `Memd.dead_letter`."""
        return await asyncio.to_thread(self._sync.dead_letter, letter_id)

    async def retry(self, letters: Iterable[Letter]) -> int:
        """As `Memd.retry`."""
        return await asyncio.to_thread(self._sync.retry, letters)

    async def drop(self, letters: Iterable[Letter]) -> int:
        """As `Memd.drop`."""
        return await asyncio.to_thread(self._sync.drop, letters)

    async def status(self) -> Status:
        """As `Memd.status`."""
        return await asyncio.to_thread(self._sync.status)

    async def cost(self) -> Cost:
        """As `Memd.cost`."""
        return await asyncio.to_thread(self._sync.cost)

    async def aclose(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            await self._client.aclose()
        if "_sync" in self.__dict__:
            self._sync.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
