"""The run of an agent as its configuration names it: user, thread, project, and whether memory is on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from memd.config import Settings
from memd.errors import Rejected
from memd.identifiers import check_identifier
from memd.push.validation import check_name

OFF = "Memory is switched off for this run."
"""What a tool returns then."""

Find = Callable[[str], Any]
"""Looks up a value of the run's configuration by name; None when it has none."""


class AgentRun(NamedTuple):
    """The user and the thread of a run, what the user is called, and the project it works on, if the run says so."""

    user_id: str
    thread_id: str
    user_name: str | None = None
    project_id: str | None = None

    @property
    def push_fields(self) -> dict[str, Any]:
        """The fields of a push of this run's messages, but for their project."""
        return {"user_id": self.user_id, "thread_id": self.thread_id, "user_name": self.user_name}


def run_of(find: Find, bound: str | None, default: str | None) -> AgentRun:
    """The run. `bound`: its user whatever it names; `default`: its user when it names none. Raises Rejected.

    `session_id` is another name of `thread_id`.
    """
    thread_id, project_id = find("thread_id"), find("project_id")
    return AgentRun(
        check_identifier("user_id", bound or find("user_id") or default),
        check_identifier("thread_id", find("session_id") if thread_id is None else thread_id),
        check_name("user_name", find("user_name")),
        None if project_id is None else check_identifier("project_id", project_id),
    )


def enables_memory(find: Find) -> bool:
    """Whether the run's `enable_memory` lets memd take part; it does unless the run says false. Raises Rejected."""
    value = find("enable_memory")
    if value is None:
        return True
    if not isinstance(value, bool):  # a guess could push what was meant to stay private
        raise Rejected("E_ENABLE_MEMORY", "enable_memory must be true or false", "enable_memory")
    return value


def fields_of(config: object, settings: Settings) -> dict[str, Any]:
    """The parameters that an adapter gets by a run's configuration. Raises Rejected."""
    find = values_of(config)
    run = run_of(find, None, settings.client.default_user)
    return {**run._asdict(), "enable_memory": enables_memory(find)}


def values_of(config: object) -> Find:
    """Looks up values in a run's configuration: a mapping or an object, or LangChain's with its `configurable`."""

    def find(name: str) -> Any:
        value = _value(config, name)
        return _value(_value(config, "configurable"), name) if value is None else value

    return find


def _value(config: object, name: str) -> Any:
    return config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)
