"""The two clients: what one has, the other has, awaited."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any, assert_type

from memd.asynchronous import in_thread
from memd.client import AsyncMemd, Memd
from memd.inbox.receipt import Outcome, Receipt
from memd.inbox.status import Status
from memd.memory.document import Fact

OWN = {"close", "aclose", "injection_at_hand"}
"""`close` is `aclose` where it is awaited; `injection_at_hand` never waits, so there is nothing to await."""


def _methods(client: type) -> dict[str, Callable[..., Any]]:
    members = inspect.getmembers(client, callable)
    return {name: method for name, method in members if not name.startswith("_") and name not in OWN}


def test_each_method_has_its_async_half() -> None:
    """Same names, same parameters with their defaults and types, same result, same docstring; and it is awaited."""
    sync, awaited = _methods(Memd), _methods(AsyncMemd)
    assert sync.keys() == awaited.keys()
    for name, method in sync.items():
        half = awaited[name]
        signature = inspect.signature(method)
        if name == "session":
            signature = signature.replace(return_annotation="AsyncSession")
        assert inspect.signature(half) == signature, name
        assert half.__name__ == method.__name__ == name
        assert method.__doc__, name
        assert half.__doc__ == method.__doc__, name
        assert inspect.iscoroutinefunction(half), name
        assert not inspect.iscoroutinefunction(method), name


def test_a_method_made_of_commands_shows_its_own_result() -> None:
    """The signature of `push` names the receipt, not the generator that makes it."""
    assert inspect.signature(Memd.push).return_annotation == "Receipt"
    assert inspect.signature(AsyncMemd.receipt).return_annotation == "Outcome"
    assert list(inspect.signature(AsyncMemd.push).parameters)[:3] == ["self", "messages", "thread_id"]


class _Sync:
    def seen(self, *, plus: int = 0) -> tuple[threading.Thread, int]:
        """Where it ran, and what it was called with."""
        return threading.current_thread(), _NUMBER.get() + plus


class _Async:
    _sync = _Sync()
    seen = in_thread(_Sync.seen)


_NUMBER = contextvars.ContextVar("number", default=0)


def test_an_async_half_runs_in_a_thread_with_the_callers_context() -> None:
    """Context variables of the caller are set where the method runs."""
    _NUMBER.set(40)
    thread, number = asyncio.run(_Async().seen(plus=2))
    assert thread is not threading.current_thread()
    assert number == 42


async def _types(app: Memd, awaited: AsyncMemd, half: _Async) -> None:
    """Checked by mypy, never run: a method and its async half differ only in being awaited."""
    assert_type(app.push([], thread_id="t"), Receipt)
    assert_type(await awaited.push([], thread_id="t"), Receipt)
    assert_type(await awaited.receipt("id", user_id=None), Outcome)
    assert_type(app.facts("ana"), list[Fact])
    assert_type(await awaited.facts("ana"), list[Fact])
    assert_type(await awaited.status(), Status)
    assert_type(await half.seen(plus=1), tuple[threading.Thread, int])
    app.push([], thread_id=1)  # type: ignore[arg-type]
    await awaited.push([], thread_id=1)  # type: ignore[arg-type]
    await awaited.push([])  # type: ignore[call-arg]
    await awaited.search("ana", "tea", limit="10")  # type: ignore[arg-type]
    await awaited.search("ana", "tea", most=10)  # type: ignore[call-arg]
