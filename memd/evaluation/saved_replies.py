"""Saved replies: a model's replies by the names of the requests, and their replay.

A replay measures gates, document and recall, never a prompt or a model.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from memd.context import digest, estimate_tokens
from memd.errors import MemdError
from memd.evaluation.known_facts import merges_of, with_ids, with_words, without_merges
from memd.evaluation.lines import BadLabels, Line, read_lines, read_text
from memd.extraction import envelope
from memd.extraction.prompt import PROMPT_VERSION, build, instructions
from memd.extraction.protocol import Extraction, Request, Usage
from memd.extraction.update import Extras, json_schema
from memd.memory.document import Document, facts_of
from memd.memory.facts import id_of


class Unanswered(MemdError):
    """The request has no saved reply. The run of its user ends here."""

    exit_code = 75

    def __init__(self, name: str, request: Request) -> None:
        super().__init__("a request has no saved reply")
        self.name = name
        self.request = request


class SavedReply(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One reply: the update as JSON (`reply`), or the raw text (`text`) of a reply that is no valid update.

    `request`: the fingerprint of its request. `usage`: the endpoint's token counts, if a model was asked; `mended` and
    `malformed`: what its reader mended and refused, as in Extraction.
    """

    name: str
    request: str = ""
    reply: dict[str, Any] | None = None
    text: str | None = None
    stop_reason: str = "end_turn"
    sloppy: str = ""
    model: str = ""
    usage: dict[str, int] | None = None
    mended: dict[str, int] = {}
    malformed: tuple[str, ...] = ()


PARTS = ("prompt", "memory", "messages")
"""The parts of a fingerprint: instructions and schema; known facts and day; new messages."""


def fingerprint(request: Request) -> str:
    """The hash of a request, in three parts."""
    turn = build(request, request.today)
    memory, _, messages = turn.rpartition("\n<messages>")
    return "-".join(
        digest(text, size=4)
        for text in (
            _prefix(request.extras),
            memory,
            messages,
        )
    )


@cache
def _prefix(extras: Extras) -> str:
    """The part that all requests share: the instructions and the schema."""
    return instructions(with_schema=False, extras=extras) + json.dumps(json_schema(extras))


def read_replies(paths: Iterable[Path]) -> dict[str, SavedReply]:
    """The replies of these files and folders, by name. Raises BadLabels."""
    found: dict[str, SavedReply] = {}
    for line in read_lines(paths, SavedReply):
        _add(found, line)
    return found


def read_answers(folder: Path) -> dict[str, SavedReply]:
    """The replies in a folder: lines of .jsonl files, and NAME.json files with the text that a model would return."""
    if not folder.is_dir():
        raise BadLabels(f"{folder}: no such folder")
    lines = sorted(folder.glob("*.jsonl"))
    found = read_replies(lines) if lines else {}
    for file in sorted(folder.glob("*.json")):
        text = read_text(file)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):  # text that is not JSON is kept as a malformed reply
            value = None
        name = file.name.removesuffix(".json")
        found[name] = SavedReply(name, reply=value) if isinstance(value, dict) else SavedReply(name, text=text)
    return found


def _add(found: dict[str, SavedReply], line: Line[SavedReply]) -> None:
    reply = line.value
    if reply.name in found:
        raise line.wrong("there is another reply of this name")
    if (reply.reply is None) == (reply.text is None):
        raise line.wrong("a reply has either `reply` or `text`")
    found[reply.name] = reply


@dataclass(slots=True)
class Recorder:
    """Collects replies, to save them."""

    kept: dict[str, SavedReply] = field(default_factory=dict)

    def keep(self, saved: SavedReply, request: Request) -> None:
        """Keep a reply; its references to known facts become their words."""
        reply = with_words(saved.reply, request.document) if saved.reply is not None else None
        self.kept[saved.name] = msgspec.structs.replace(saved, reply=reply, request=fingerprint(request))

    def write(self, file: Path, names: Collection[str] | None = None) -> None:
        """Write the replies of these names (None: all) to a replay file, where they replace earlier ones.

        Raises BadLabels for a file that holds something else.
        """
        kept = read_replies([file]) if file.exists() else {}
        kept |= {name: reply for name, reply in self.kept.items() if names is None or name in names}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"".join(msgspec.json.encode(kept[name]) + b"\n" for name in sorted(kept)))


class Replayed:
    """Returns saved replies. `changed`: the requests that differ from the answered ones, with the parts that differ."""

    def __init__(self, replies: Mapping[str, SavedReply], model: str, recorder: Recorder | None = None) -> None:
        self._replies = replies
        self._model = model
        self._recorder = recorder
        self._merges: defaultdict[str, dict[str, list[Any]]] = defaultdict(dict)
        for name, saved in replies.items():
            self._merges[name.partition(".")[0]] |= merges_of(saved.reply)
        self.changed: dict[str, tuple[str, ...]] = {}

    async def answer(self, name: str, request: Request) -> Extraction:
        """Return the reply of this name. Raises Unanswered, ExtractionFailed."""
        saved = self._replies.get(name)
        if saved is None:
            raise Unanswered(name, request)
        if saved.request and (differs := _differences(saved.request, fingerprint(request))):
            self.changed[name] = differs
        if self._recorder is not None:
            self._recorder.keep(saved, request)
        merges = self._merges[name.partition(".")[0]]
        unmerged = without_merges(saved.reply, _seen(request), merges) if saved.reply and merges else saved.reply
        whole = msgspec.structs.replace(saved, reply=unmerged)
        return extraction(whole, request, saved.model or self._model)


def extraction(saved: SavedReply, request: Request, model: str) -> Extraction:
    """A saved reply as the extractor would have returned it. Raises ExtractionFailed."""
    text = saved.text
    if text is None:
        text = json.dumps(with_ids(saved.reply, _seen(request)), ensure_ascii=False)
    body = {
        "content": [{"type": "text", "text": text}],
        "stop_reason": saved.stop_reason,
        "usage": saved.usage or _estimated(request, text),
    }
    reply, usage = envelope.read(json.dumps(body).encode(), "application/json", request.messages)
    mended, malformed = saved.mended or reply.mended, saved.malformed or reply.malformed
    return Extraction(reply.update, usage, model, PROMPT_VERSION, mended, malformed)


def _seen(request: Request) -> Document:
    """The document with the facts that the request shows: no model names a fact that it has not seen."""
    if request.shown is None:
        return request.document
    seen = [fact for fact in facts_of(request.document) if id_of(fact) in request.shown]
    return {**request.document, "facts": seen}


def saved_from(name: str, answered: Extraction) -> SavedReply:
    """A model's reply in its saved form."""
    return SavedReply(
        name,
        reply=_without_nulls(msgspec.to_builtins(answered.update)),
        model=answered.model,
        usage=_fields(answered.usage),
        mended=dict(answered.mended),
        malformed=answered.malformed,
    )


def changes(changed: Mapping[str, tuple[str, ...]], shown: Callable[[str], bool]) -> dict[str, Any]:
    """The number of requests that differ from the answered ones, in all and by part, and their names to print."""
    counts = Counter(part for parts in changed.values() for part in parts)
    names = sorted(filter(shown, changed))
    return {"requests": len(changed), **{part: counts[part] for part in PARTS}, "names": names}


def _differences(saved: str, now: str) -> tuple[str, ...]:
    if saved == now:
        return ()
    pairs = zip(PARTS, saved.split("-"), now.split("-"), strict=False)
    return tuple(part for part, before, after in pairs if before != after)


def _estimated(request: Request, text: str) -> dict[str, int]:
    """Estimated tokens of a call without counts, as if the prefix was cached."""
    return {
        "input_tokens": estimate_tokens(build(request, request.today)),
        "output_tokens": estimate_tokens(text),
        "cache_read_input_tokens": estimate_tokens(_prefix(request.extras)),
        "cache_creation_input_tokens": 0,
    }


def _fields(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list | tuple) else value
