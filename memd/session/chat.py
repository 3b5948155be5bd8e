"""One form for the turns of a chat, whatever shape they came in: words, tool calls, tool results, and anything else.

`reading_chats` makes it of messages, `writing_chats` makes messages of it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import orjson
from msgspec import Struct, field

from memd.context import tenths_of_tokens
from memd.push.content import sort_of

ChatRole = Literal["user", "assistant", "system", "tool"]

FILE_TOKENS = 1_500
"""What an image or another file counts for: about what a large image costs, whatever its bytes are."""

SUMMARY_HEAD = "[Compressed]\n\n"
"""How each summary begins. A push of one is known by this, and dropped: it is nobody's words."""


class Text(Struct, frozen=True, tag="text"):
    """Words."""

    text: str


class Other(Struct, frozen=True, tag="other"):
    """A block of one provider, such as an image or a thought, kept as it is."""

    raw: dict[str, Any]


class ToolUse(Struct, frozen=True, tag="tool_use"):
    """A call of a tool. `input`: any value of JSON; text where the model wrote no valid JSON."""

    id: str
    name: str
    input: Any = field(default_factory=dict)


class ToolResult(Struct, frozen=True, tag="tool_result", rename="camel"):
    """The result of the call with the id `tool_use_id`."""

    tool_use_id: str
    output: tuple[Text | Other, ...] = ()
    is_error: bool = False

    @property
    def text(self) -> str:
        """Its words."""
        return _words(self.output)


ChatBlock = Text | ToolUse | ToolResult | Other


class ChatTurn(Struct, frozen=True, dict=True, rename={"blocks": "content", "created_at": "createdAt"}):
    """One turn. Results of tools have turns of their own, with the role `tool` and no other blocks.

    `id`: "" where it has none. `created_at`: ISO 8601. `name`: who speaks, where the app says so. `kind`: `summary` for
    what stands in the place of turns that were cut; nobody said it.
    """

    role: ChatRole
    blocks: tuple[ChatBlock, ...]
    id: str = ""
    created_at: str | None = None
    name: str | None = None
    kind: Literal["said", "summary"] = "said"

    @cached_property
    def text(self) -> str:
        """Its words."""
        return _words(self.blocks)

    @cached_property
    def cost(self) -> int:
        """Ten times its estimated tokens."""
        return sum(map(_cost, self.blocks))

    @cached_property
    def tool_chars(self) -> int:
        """The characters of its longest input of a tool, or of its longest result."""
        inputs = [len(json_text(use.input)) for use in self.calls]
        return max([*inputs, *(len(result.text) for result in self.results)], default=0)

    @cached_property
    def shorter(self) -> dict[tuple[int, ...], ChatTurn]:
        """Shorter versions of it, by what made them shorter: each window asks for them again."""
        return {}

    @cached_property
    def has_files(self) -> bool:
        """Whether a result has a block that is not words."""
        return any(isinstance(part, Other) for result in self.results for part in result.output)

    @cached_property
    def calls(self) -> tuple[ToolUse, ...]:
        """The tools that it calls."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    @cached_property
    def results(self) -> tuple[ToolResult, ...]:
        """The results that it brings."""
        return tuple(block for block in self.blocks if isinstance(block, ToolResult))


def said(role: ChatRole, text: str) -> ChatTurn:
    """A turn of words alone."""
    return ChatTurn(role, (Text(text),))


def is_notes(turn: ChatTurn) -> bool:
    """Whether a turn is the text of a summary, and not what answers it."""
    return turn.kind == "summary" and turn.role == "user"


def json_text(value: Any) -> str:
    """The input of a tool as text: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _words(blocks: tuple[Any, ...]) -> str:
    return "\n".join([block.text for block in blocks if isinstance(block, Text)])


def _cost(block: ChatBlock) -> int:
    if isinstance(block, Text):
        return tenths_of_tokens(block.text)
    if isinstance(block, ToolUse):
        return tenths_of_tokens(block.name) + tenths_of_tokens(json_text(block.input))
    if isinstance(block, ToolResult):
        return sum(map(_cost, block.output))
    if sort_of(block.raw) == "file":
        return 10 * FILE_TOKENS
    return tenths_of_tokens(json_text(block.raw))
