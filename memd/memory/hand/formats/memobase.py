"""memobase: a user's profile as the API returns it (`{"profiles": [...]}`, also in `data`), as the list of its client,
or as `profile(need_json=True)`: `{topic: {sub_topic: {content, …}}}`; and its events (`{"events": [...]}`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from memd.context import DEFAULT_AGENT
from memd.memory.document import Fact
from memd.memory.hand.formats.parcels import ImportContents, Parcel, entries, first_entry, text_at

NOTE = "memobase's profile() leaves out what exceeds its max_token_size (1,000): fetch it with a higher one"


def recognises(value: Any) -> bool:
    """Whether it has slots of a profile, or events."""
    inner = _unwrapped(value)
    first = first_entry(inner, "profiles", "events")
    if {"attributes", "sub_topic", "event_data"} & first.keys():
        return True
    return bool(_nested(inner))


def read(value: Any, _user_id: str) -> ImportContents:
    """One parcel: a slot is a fact that begins with its topic; of an event each line of its summary is one."""
    inner = _unwrapped(value)
    refused: Counter[str] = Counter()
    if nested := _nested(inner):
        facts = [_slot(topic, sub, slot) for topic, sub, slot in nested]
    else:
        facts = [fact for item in entries(inner, "profiles", "events") for fact in _facts(item, refused)]
    parcel = Parcel("memobase", None, DEFAULT_AGENT, tuple(facts), refused=refused)
    return ImportContents("memobase", (parcel,), notes=(NOTE,))


def _unwrapped(value: Any) -> Any:
    """What the API wraps in `data`."""
    return value["data"] if isinstance(value, dict) and isinstance(value.get("data"), dict | list) else value


def _nested(value: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """The slots of the form by topic and sub-topic; empty for any other form."""
    if not isinstance(value, dict) or not all(isinstance(part, dict) for part in value.values()):
        return []
    slots = [(topic, sub, slot) for topic, part in value.items() for sub, slot in part.items()]
    if all(isinstance(slot, dict) and isinstance(slot.get("content"), str) and "id" in slot for *_, slot in slots):
        return slots
    return []


def _facts(item: dict[str, Any], refused: Counter[str]) -> Iterator[Fact]:
    if isinstance(item.get("event_data"), dict):
        tip = text_at(item["event_data"], "event_tip")
        lines = (line.strip().removeprefix("- ").strip() for line in tip.splitlines())
        yield from ({**_times(item), "content": line, "category": "event"} for line in lines if line)
        return
    attributes = item["attributes"] if isinstance(item.get("attributes"), dict) else item
    if text_at(item, "content"):
        yield _slot(text_at(attributes, "topic"), text_at(attributes, "sub_topic"), item)
    else:
        refused["no_text"] += 1


def _slot(topic: str, sub_topic: str, slot: dict[str, Any]) -> Fact:
    """A slot, such as interest, foods: ramen."""
    name = ", ".join(filter(None, (topic.replace("_", " "), sub_topic.replace("_", " "))))
    return {**_times(slot), "content": f"{name}: {slot['content']}" if name else slot["content"]}


def _times(item: dict[str, Any]) -> Fact:
    return {"createdAt": item.get("created_at"), "updatedAt": item.get("updated_at")}
