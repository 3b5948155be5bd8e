"""Anthropic's memory tool (`memory_20250818`) over a user's memory, for the SDK's tool runner.

Claude's writes become notes and changes to facts, by the rules for agents (`memory/hand/notes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from memd.adapters.agent_memory import AgentMemory
from memd.adapters.agent_run import OFF, enables_memory, values_of
from memd.adapters.memory_files import MemoryFiles
from memd.asynchronous import in_thread
from memd.client import Memd
from memd.context import DEFAULT_AGENT
from memd.errors import MemdError
from memd.identifiers import check_identifier


class MemdMemoryTool(BetaAbstractMemoryTool):
    """The memory tool of one user: `client.beta.messages.tool_runner(tools=[MemdMemoryTool(memd, user_id=…)], …)`.

    The folder `/memories` holds `facts.md` and one file for each summary that exists. Every command raises ToolError,
    which the tool runner passes to the model as an error; without `enable_memory` every command does.
    """

    def __init__(
        self,
        memd: Memd,
        *,
        user_id: str,
        agent_name: str = DEFAULT_AGENT,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        enable_memory: bool = True,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._enabled = enable_memory
        self._files = MemoryFiles(AgentMemory(memd.settings, user_id, agent_name), memd.settings.apply)

    @classmethod
    def of_run(cls, memd: Memd, config: object, **options: Any) -> Self:
        """The tool for one run, by its configuration, a mapping or an object: `user_id` and `enable_memory`; `options`
        are those of the constructor. Raises Rejected.
        """
        return cls(memd, **_of_run(memd, config), **options)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """List the folder, or show a file with line numbers."""
        return self._answer(lambda: self._files.view(_text(command, "path"), _view_range(command)))

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Write a file that does not exist yet."""
        return self._answer(lambda: self._files.create(_text(command, "path"), _text(command, "file_text")))

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs exactly once in a file."""
        return self._answer(
            lambda: self._files.str_replace(
                _text(command, "path"), _text(command, "old_str"), _text(command, "new_str", "")
            )
        )

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert text after a line of a file."""
        return self._answer(
            lambda: self._files.insert(
                _text(command, "path"), _number(command, "insert_line"), _text(command, "insert_text")
            )
        )

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Empty a file."""
        return self._answer(lambda: self._files.delete(_text(command, "path")))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a summary to another file."""
        return self._answer(lambda: self._files.rename(_text(command, "old_path"), _text(command, "new_path")))

    def _answer(self, command: Callable[[], str]) -> str:
        if not self._enabled:
            raise ToolError(OFF)
        try:
            return command()
        except MemdError as error:  # nothing changed; the model gets the reason
            raise ToolError(str(error)) from None


class AsyncMemdMemoryTool(BetaAsyncAbstractMemoryTool):
    """`MemdMemoryTool` for the async tool runner: each command runs in a thread."""

    def __init__(
        self,
        memd: Memd,
        *,
        user_id: str,
        agent_name: str = DEFAULT_AGENT,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        enable_memory: bool = True,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._sync = MemdMemoryTool(memd, user_id=user_id, agent_name=agent_name, enable_memory=enable_memory)

    @classmethod
    def of_run(cls, memd: Memd, config: object, **options: Any) -> Self:
        """As `MemdMemoryTool.of_run`."""
        return cls(memd, **_of_run(memd, config), **options)

    view = in_thread(MemdMemoryTool.view)
    create = in_thread(MemdMemoryTool.create)
    str_replace = in_thread(MemdMemoryTool.str_replace)
    insert = in_thread(MemdMemoryTool.insert)
    delete = in_thread(MemdMemoryTool.delete)
    rename = in_thread(MemdMemoryTool.rename)


def _of_run(memd: Memd, config: object) -> dict[str, Any]:
    find = values_of(config)
    user_id = check_identifier("user_id", find("user_id") or memd.settings.client.default_user)
    return {"user_id": user_id, "enable_memory": enables_memory(find)}


def _text(command: Any, name: str, default: str | None = None) -> str:
    """A text parameter of a command. The SDK does not check the model's parameters. Raises ToolError."""
    value = getattr(command, name, None)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise ToolError(f"The parameter `{name}` must be text.")
    return value


def _number(command: Any, name: str) -> int:
    value = getattr(command, name, None)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ToolError(f"The parameter `{name}` must be a whole number.")
    return value


def _view_range(command: Any) -> list[int] | None:
    value = getattr(command, "view_range", None)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(part, int) for part in value):
        raise ToolError("The parameter `view_range` must be two whole numbers.")
    return value
