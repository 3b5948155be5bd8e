"""The clients: push a conversation, look up the outcome, read and edit the memory. They start no loop and no thread."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from functools import cached_property, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar

import redis.asyncio
from msgspec.structs import replace

from memd import config
from memd.asynchronous import in_thread
from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket, user_hash
from memd.identifiers import check_identifier
from memd.inbox import budget, dead, verbs
from memd.inbox.connection import Call, connect, connect_async, send, send_async
from memd.inbox.dead import EVERY, Content, Letter, LetterFilter, LetterPage
from memd.inbox.hours import Hour, read_hours
from memd.inbox.receipt import UNKNOWN, Outcome, Receipt, explain, judge, parse_id, receipt, standings
from memd.inbox.verbs import Merged, raw_lists
from memd.memory.hand.by_hand import ByHand
from memd.projects.for_client import OpensProjects
from memd.push.filtering import to_context
from memd.push.trace_parent import push_span
from memd.push.validation import RawPush, check_project, check_push, parse_push
from memd.recall.reading import Reading
from memd.session.of_client import OpensSessions

if TYPE_CHECKING:
    from memd.forget import Forgotten
    from memd.inbox.cost import Cost
    from memd.inbox.flush import FlushProgress, FlushResult
    from memd.inbox.keys import PendingKey, PendingPage
    from memd.inbox.status import Status
    from memd.recall.users import Order, UserList, UserPage
    from memd.session.asynchronous_session import AsyncSession

Turns = Sequence[Mapping[str, Any]]

P = ParamSpec("P")
R = TypeVar("R")

Calls: TypeAlias = Generator[Call[Any], Any, R]
"""A method as the calls it sends one after the other, and its result. Who sends them, sync or async, is left open."""


class _Commands:
    """The methods that are a few commands to the server. Both clients send the same ones."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def push(  # noqa: PLR0913  (what a push may say)
        self,
        messages: Turns,
        *,
        thread_id: str,
        user_id: str | None = None,
        user_name: str | None = None,
        agent_name: str = DEFAULT_AGENT,
        signals: Iterable[str] = (),
        now: bool = False,
        project_id: str | None = None,
        source: Mapping[str, str] | None = None,
    ) -> Calls[Receipt]:
        """Push a conversation in one round trip. Pushing the same messages again changes only the due time.

        `messages`: all turns so far, or only the new ones (then each needs an `id` or `created_at`), in the shapes that
        docs/wire.md lists. `user_name`: what the user is called. A message whose `name` is neither this nor `user_id`
        is somebody else's. `now`: due at once, for example before a summary replaces the messages. `project_id`: the
        project that these messages are about; facts of it that rest on them alone are shared with its members, if the
        user may add any. A message that was pushed without it before stays private. `source`: what the words come from,
        `{"kind": "user" | "ai" | "knowledge_base" | "project_resource", "id": …}`.
        Raises Rejected (nothing was stored), InboxFull, NotReady.
        """
        push: dict[str, Any] = {"thread_id": thread_id, "messages": _listed(messages), "now": now}
        if user_id is not None:
            push["user_id"] = user_id
        if user_name is not None:
            push["user_name"] = user_name
        if agent_name:
            push["agent_name"] = agent_name
        if signals:
            push["signals"] = _listed(signals)
        if project_id is not None:
            push["project_id"] = project_id
        if source is not None:
            push["source"] = dict(source) if isinstance(source, Mapping) else source
        return (yield from self.push_parsed(check_push(push, self._settings.client)))

    def push_json(self, raw: bytes, *, now: bool = False, project_id: str | None = None) -> Calls[Receipt]:
        """Push one JSON object in the format of the raw lists (docs/wire.md). Raises as `push`.

        `project_id`: the project, unless the push names one.
        """
        push = parse_push(raw, self._settings.client)
        push = replace(push, now=push.now or now, project_id=push.project_id or check_project(project_id))
        return (yield from self.push_parsed(push))

    def push_parsed(self, push: RawPush) -> Calls[Receipt]:
        """Push what `memd.push.validation` has checked. Raises InboxFull, NotReady."""
        context = to_context(push)
        merged: Merged
        if self._settings.tracing.enabled:
            with push_span(context) as traced:
                merged = yield verbs.push(traced, self._settings.inbox.min_replicas)
        else:
            merged = yield verbs.push(context, self._settings.inbox.min_replicas)
        return receipt(merged, context)

    def receipt(self, receipt_id: str, *, user_id: str | None = None) -> Calls[Outcome]:
        """The state of a push, or its outcome. With `user_id`, the push of any other user is unknown.

        Raises Rejected when the id has not the form of a receipt id.
        """
        key, gen, seq = parse_id(receipt_id)
        if user_id is not None and not (yield from _reply(verbs.holds(user_hash(user_id), key))):
            return UNKNOWN
        outcome = judge((yield from _reply(standings([key])))[0], gen, seq)
        if outcome.state != "pending":
            return outcome
        return explain(outcome, (yield from _reply(budget.rationed([key])))[0])


def _listed(values: object) -> object:
    """Values as a list; a value that cannot be iterated is returned unchanged, and the check of the push refuses it."""
    return values if isinstance(values, list) else list(values) if isinstance(values, Iterable) else values


def _reply(call: Call[R]) -> Calls[R]:
    """Send one call; its reply, with its type."""
    reply: R = yield call
    return reply


def _sent(commands: Callable[Concatenate[_Commands, P], Calls[R]]) -> Callable[Concatenate[Memd, P], R]:
    """The method of `Memd` that sends these commands."""

    def run(self: Memd, /, *args: P.args, **kwargs: P.kwargs) -> R:
        calls = commands(self._commands, *args, **kwargs)
        try:
            call = next(calls)
            while True:
                call = calls.send(send(self._client, call))
        except StopIteration as end:
            result: R = end.value
            return result

    return _documented(run, commands)


def _awaited(
    commands: Callable[Concatenate[_Commands, P], Calls[R]],
) -> Callable[Concatenate[AsyncMemd, P], Coroutine[Any, Any, R]]:
    """The method of `AsyncMemd` that sends these commands, without a thread."""

    async def run(self: AsyncMemd, /, *args: P.args, **kwargs: P.kwargs) -> R:
        calls = commands(self._commands, *args, **kwargs)
        try:
            call = next(calls)
            while True:
                call = calls.send(await send_async(self._client, call))
        except StopIteration as end:
            result: R = end.value
            return result

    return _documented(run, commands)


F = TypeVar("F", bound=Callable[..., Any])


def _documented(run: F, commands: Callable[..., Any]) -> F:
    """Give a method the name, docstring and parameters of its commands, and the type of their result."""
    wraps(commands)(run)
    signature = inspect.signature(commands)
    result = signature.return_annotation.removeprefix("Calls[").removesuffix("]")
    run.__signature__ = signature.replace(return_annotation=result)  # type: ignore[attr-defined]  # inspect reads it
    return run


class Memd(ByHand, Reading, OpensSessions, OpensProjects):
    """The client for apps without an event loop. Thread-safe. Also a context manager.

    `settings`: those of `memd.config.load`; None reads config.yaml and the environment, as the daemon does. Every
    method that talks to the server raises InboxUnavailable when it cannot be reached.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or config.load().settings
        self._commands = _Commands(self.settings)

    @cached_property
    def _client(self) -> redis.Redis:
        return connect(self.settings)

    def _server(self) -> redis.Redis:
        return self._client

    @cached_property
    def _users(self) -> UserList:
        from memd.recall.users import UserList  # noqa: PLC0415  (as for forget)

        return UserList(self.settings, self._server)

    @property
    def _keys(self) -> ModuleType:
        from memd.inbox import keys  # noqa: PLC0415  (as for flush)

        return keys

    push = _sent(_Commands.push)
    push_json = _sent(_Commands.push_json)
    push_parsed = _sent(_Commands.push_parsed)
    receipt = _sent(_Commands.receipt)

    def _push_chat(self, bucket: Bucket, thread_id: str, messages: list[dict[str, Any]]) -> None:
        self.push(messages, thread_id=thread_id, user_id=bucket.user_id, agent_name=bucket.agent_name)

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
        """Make pending keys due now: those of one user, agent or thread, or all.

        `wait`: return when everything accepted before has ended, or after `timeout_s` seconds, and call `progress` on
        the way. A flush overrides no budget: when only keys that wait longer for a budget are left, it returns.
        """
        from memd.inbox.flush import Flush, Selection  # noqa: PLC0415  (8 ms for all imports of this class)

        flush = Flush(self._client, raw_lists(self.settings), Selection(user_id, agent_name, thread_id))
        if wait:
            return flush.wait(timeout_s, progress)
        return flush.start()

    def forget(self, user_id: str, *, agent_name: str | None = None, dry_run: bool = False) -> Forgotten:
        """Forget a user, or the memory that one agent has of them. Messages in flight cannot bring it back.

        `dry_run`: only count what would be removed. When the server is out of reach, the documents are removed at once
        and `complete` of the result is False: a worker does the rest later. `known` is False when there was nothing to
        forget. Raises StoreUnavailable.
        """
        from memd.forget import forget  # noqa: PLC0415  (few apps ever forget; it imports the store)

        return forget(self.settings, self._client, user_id, agent_name, dry_run=dry_run)

    def dead(self, selection: LetterFilter = EVERY) -> list[Letter]:
        """Dead letters, oldest first: all, or those of `LetterFilter(ids=…, code=…, user_id=…)`."""
        return sorted(dead.letters(self._client, selection), key=lambda letter: letter.died_at)

    def dead_page(
        self,
        selection: LetterFilter = EVERY,
        *,
        after: str = "",
        limit: int = 50,
    ) -> LetterPage:
        """Dead letters, the newest first, a page at a time, in bounded time; and how many have which code.

        `after`: `next` of the page before; `limit`: 1 to 500. Raises Rejected.
        """
        return dead.letter_page(self._client, selection, after=after, limit=limit)

    def dead_letter(self, letter_id: str) -> Content | None:
        """One dead letter with its messages; None when the id is unknown."""
        return dead.content(self._client, letter_id)

    def retry(self, letters: Iterable[Letter]) -> int:
        """Make dead letters pending again, each message in its old place. Returns how many letters were moved.

        A letter whose content breaks the wire format stays, because a worker would refuse it again untried.
        """
        return dead.retry(self._client, self.settings, letters)

    def drop(self, letters: Iterable[Letter]) -> int:
        """Delete dead letters for good. Returns how many still existed."""
        return dead.drop(self._client, letters)

    def users(
        self,
        *,
        by: Order = "id",
        after: str = "",
        limit: int = 100,
        find: str = "",
        visible: Callable[[str], bool] = lambda _: True,
    ) -> UserPage:
        """The users that have a memory, a page at a time: by id, or the one that changed last first (`by="changed"`).

        `after`: `next` of the page before; `limit`: 1 to 1,000. `find`: only users whose id has this text in it, in any
        case. `visible`: leaves out the users for whom it returns False. Facts and pending keys are read only of the
        users on the page, pending ones only while the server is reachable. Raises Rejected, StoreUnavailable.
        """
        return self._users.page(by=by, after=after, limit=limit, find=find, visible=visible)

    def pending(self, *, user_id: str | None = None, after: str = "", limit: int = 100) -> PendingPage:
        """The keys that have not ended, a page at a time: state, turns, tokens, due time, worker; never the text.

        Of one user, or of all: claimed keys first, then by due time. `after`: `next` of the page before; `limit`: 1 to
        1,000. A key that moves while you read may be missing or come twice. Raises Rejected.
        """
        user = None if user_id is None else check_identifier("user_id", user_id)
        page: PendingPage = self._keys.pending_page(self._client, after=after, limit=limit, user_id=user)
        return page

    def key_of_receipt(self, receipt_id: str, *, user_id: str | None = None) -> tuple[PendingKey, ...]:
        """The key of a push as far as it has not ended: what is claimed, then what is pending.

        Both may hold messages of later pushes, too; `receipt` says which state the push itself has. With `user_id`, the
        push of any other user has no key. Raises Rejected when the id has not the form of a receipt id.
        """
        key = parse_id(receipt_id)[0]
        if user_id is not None and not send(self._client, verbs.holds(user_hash(user_id), key)):
            return ()
        found: tuple[PendingKey, ...] = self._keys.standing_of(self._client, key)
        return found

    def status(self) -> Status:
        """The figures of the inbox, the workers and the server."""
        from memd.inbox.status import read_status  # noqa: PLC0415  (as for flush)

        return read_status(self._client, self.settings)

    def hours(self) -> tuple[Hour, ...]:
        """The counters of the last 48 hours, oldest first, a row each; the last one is the present hour.

        They begin with the first start of a scheduler that keeps them.
        """
        return read_hours(self._client)

    def cost(self, *, days: int = 0) -> Cost:
        """The tokens that the model's calls have used, and their price: today, in total, and on each of the last days.

        `days`: how many of these, today included; 0 to 90, for the inbox keeps 90. Raises Rejected.
        """
        from memd.inbox.cost import read_cost  # noqa: PLC0415  (as for flush)

        return read_cost(self._client, self.settings, days)

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncMemd:
    """The client for apps with an event loop: the methods of `Memd`, awaited. Also an async context manager.

    `push` and `receipt` are one round trip each, without a thread; methods that read files or wait run in a thread. A
    cancelled push may have arrived: push again, the messages merge.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or config.load().settings
        self._commands = _Commands(self.settings)

    @cached_property
    def _client(self) -> redis.asyncio.Redis:
        return connect_async(self.settings)

    @cached_property
    def _sync(self) -> Memd:
        return Memd(self.settings)

    push = _awaited(_Commands.push)
    push_json = _awaited(_Commands.push_json)
    push_parsed = _awaited(_Commands.push_parsed)
    receipt = _awaited(_Commands.receipt)

    flush = in_thread(Memd.flush)
    forget = in_thread(Memd.forget)
    dead = in_thread(Memd.dead)
    dead_page = in_thread(Memd.dead_page)
    dead_letter = in_thread(Memd.dead_letter)
    retry = in_thread(Memd.retry)
    drop = in_thread(Memd.drop)
    users = in_thread(Memd.users)
    pending = in_thread(Memd.pending)
    key_of_receipt = in_thread(Memd.key_of_receipt)
    status = in_thread(Memd.status)
    hours = in_thread(Memd.hours)
    cost = in_thread(Memd.cost)

    inject = in_thread(Memd.inject)
    injection = in_thread(Memd.injection)
    search = in_thread(Memd.search)
    document = in_thread(Memd.document)
    seen_document = in_thread(Memd.seen_document)
    past = in_thread(Memd.past)

    inspect = in_thread(Memd.inspect)
    why = in_thread(Memd.why)
    refused = in_thread(Memd.refused)
    facts = in_thread(Memd.facts)
    archived = in_thread(Memd.archived)
    withheld = in_thread(Memd.withheld)
    add_fact = in_thread(Memd.add_fact)
    edit_fact = in_thread(Memd.edit_fact)
    remove_fact = in_thread(Memd.remove_fact)
    restore_fact = in_thread(Memd.restore_fact)
    doubtful = in_thread(Memd.doubtful)
    approve_fact = in_thread(Memd.approve_fact)
    drop_fact = in_thread(Memd.drop_fact)
    project = in_thread(Memd.project)
    projects = in_thread(Memd.projects)
    profile = in_thread(Memd.profile)
    set_profile = in_thread(Memd.set_profile)
    unset_profile = in_thread(Memd.unset_profile)
    export = in_thread(Memd.export)
    import_memory = in_thread(Memd.import_memory)

    async def session(
        self, thread_id: str, *, user_id: str, agent_name: str = DEFAULT_AGENT, user_name: str | None = None
    ) -> AsyncSession:
        from memd.session.asynchronous_session import opened  # noqa: PLC0415  (as in `Memd`: for apps with sessions)

        return await opened(self._sync, thread_id, user_id, agent_name, user_name)

    session.__doc__ = Memd.session.__doc__

    sessions = in_thread(Memd.sessions)
    remove_session = in_thread(Memd.remove_session)

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
