"""Claude's data export: `conversations.json`, and `memories.json` with what Claude has remembered.

The memory is Markdown under headings, which are our six summaries; what stands under other headings is read line by
line as facts. The conversations are pushed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from memd.context import DEFAULT_AGENT
from memd.memory.document import Fact
from memd.memory.gates.refusal import MAX_SUMMARY_CHARS
from memd.memory.hand.formats.chats import chat_message, chat_thread, conversation_files
from memd.memory.hand.formats.parcels import (
    ChatThread,
    ImportContents,
    Parcel,
    entries,
    files_of,
    first_entry,
    refuse,
    text_at,
)
from memd.memory.text import one_line

HEADINGS = {
    "work context": "workContext",
    "personal context": "personalContext",
    "top of mind": "topOfMind",
    "recent months": "recentMonths",
    "brief history": "earlierContext",
    "earlier context": "earlierContext",
    "long-term background": "longTermBackground",
}

SENDERS = {"human": "user", "assistant": "assistant"}

_HEADING = re.compile(r"(?:#{1,6}\s+(.+)|\*\*([^*]+)\*\*:?|\*([^*]+)\*:?)")
_BULLET = re.compile(r"(?:[-*•]\s+|\d+\.\s+)?(?:\[(?:stated|derived|inferred)\]\s*)?(\S.*)")
_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_NAME = re.compile(r"^name:\s*(\S.*)$", re.MULTILINE)


def recognises(value: Any) -> bool:
    """Whether it is a list of conversations or memories of Claude, or a folder with either."""
    listed = [*conversation_files(value), *_memories(value)]
    first = next((item for item in listed if isinstance(item, dict)), None) or first_entry(value)
    return isinstance(first.get("chat_messages"), list) or "conversations_memory" in first


def read(value: Any, _user_id: str) -> ImportContents:
    """One parcel, and a thread for each conversation."""
    refused: Counter[str] = Counter()
    listed = entries([*conversation_files(value), *_memories(value)] or value, "conversations")
    memories = [item for item in listed if "conversations_memory" in item or "memory_files" in item]
    if len({text_at(item, "account_uuid") for item in memories}) > 1:
        refuse("E_IMPORT_OWNER", "the memories are of several accounts: import those of one", "memories")
    threads = list(_threads([item for item in listed if "chat_messages" in item], refused))
    summaries: dict[str, dict[str, Any]] = {}
    facts: list[Fact] = []
    for memory in memories:
        _read_memory(memory, summaries, facts, refused)
    parcel = Parcel("claude", None, DEFAULT_AGENT, tuple(facts), summaries, refused=refused)
    return ImportContents("claude", (parcel,), tuple(threads))


def _memories(value: object) -> list[Any]:
    """The entries of memories.json, or of a folder `memories`."""
    found: list[Any] = []
    for path, content in sorted(files_of(value).items()):
        if path.rpartition("/")[2] == "memories.json" or "memories/" in path:
            found += content if isinstance(content, list) else [content]
    return found


def _threads(conversations: Iterable[dict[str, Any]], refused: Counter[str]) -> Iterator[ChatThread]:
    for conversation in conversations:
        if thread := chat_thread("claude", conversation.get("uuid"), _messages(conversation)):
            yield thread
        else:
            refused["no_conversation"] += 1


def _messages(conversation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    messages = conversation.get("chat_messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and (role := SENDERS.get(text_at(message, "sender"))):
            yield from chat_message(role, _text(message), message.get("uuid"), message.get("created_at"))


def _text(message: dict[str, Any]) -> str:
    """The text blocks; an older export has only `text`."""
    blocks = message.get("content")
    texts = [
        text_at(block, "text")
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict) and block.get("type") == "text"
    ]
    return "\n\n".join(filter(None, texts)) or text_at(message, "text")


def _read_memory(
    memory: dict[str, Any], summaries: dict[str, dict[str, Any]], facts: list[Fact], refused: Counter[str]
) -> None:
    for name, lines in _sections(text_at(memory, "conversations_memory")):
        if name:
            summaries[name] = {"summary": _fitting(lines, refused), "updatedAt": memory.get("updated_at")}
        else:
            facts += ({"content": sentence} for sentence in map(_sentence, lines) if sentence)
    files = memory.get("memory_files")
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict):
            facts += _facts_of_file(file)
    projects = memory.get("project_memories")
    refused["project_memory"] += len(projects) if isinstance(projects, dict) else 0


def _sections(text: str) -> list[tuple[str, list[str]]]:
    """The lines of a memory by the summary that they belong to; "" for those under no heading that we know."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in map(str.strip, text.splitlines()):
        match = _HEADING.fullmatch(line)
        if match:
            name = HEADINGS.get((match[1] or match[2] or match[3]).strip().casefold(), "")
        elif line and line != "---":
            found.setdefault(name, []).append(line.replace("**", ""))
    return list(found.items())


def _fitting(lines: list[str], refused: Counter[str]) -> str:
    """The paragraphs that fit in a summary, from the first on; the first is never cut, so a gate may refuse it."""
    text = ""
    for line in map(one_line, lines):
        longer = f"{text} {line}".strip()
        if text and len(longer) > MAX_SUMMARY_CHARS:
            refused["summary_shortened"] += 1
            break
        text = longer
    return text


def _facts_of_file(file: dict[str, Any]) -> Iterator[Fact]:
    """The lines of a memory file; those about a person begin with their name."""
    text = text_at(file, "content").replace("\r\n", "\n")
    front = _FRONT.match(text)
    name = _NAME.search(front[1]) if front else None
    who = f"{name[1].strip()}: " if name and "people/" in text_at(file, "path") else ""
    for line in text[front.end() if front else 0 :].splitlines():
        if not line.lstrip().startswith("#") and (sentence := _sentence(line)):
            yield {"content": f"{who}{sentence}", "updatedAt": file.get("updated_at")}


def _sentence(line: str) -> str:
    match = _BULLET.fullmatch(line.strip())
    return match[1].replace("**", "").strip() if match else ""
