"""What the played model answers: one fact for each request, in the form that the request's own prompt asks for.

memd's prompt gets an update, langmem's a call of the tool that records a memory, mem0's its JSON. The fact is the same
in all of them: the first sentence of the user's statement.
"""

from __future__ import annotations

import json
from typing import Any

from memd.testing.dialects import message_body
from memd.testing.replies import UPDATE_PARTS

FACT = {
    "category": "context",
    "confidence": 0.9,
    "scope": "user",
    "durability": "durable",
    "authority": "descriptive",
}
FACT_CHARS = 60
"""At most."""

STATEMENT = "I live in "
"""How the statement of each conversation begins; nothing else in it reads so (`benchmarks.load.statement`)."""

MEM0 = "\n## New Messages\n"
"""A heading of mem0's prompt, and of no other."""


def answer(request: bytes) -> bytes:
    """The reply to a request: about the first new message of memd's prompt, or the statement in any other prompt."""
    body = json.loads(request)
    prompt = _text(body["messages"][-1]["content"])
    fact = fact_in(prompt)
    if body.get("tools"):
        return _tool_call(body["tools"][0]["name"], {"content": fact})
    if MEM0 in prompt:
        return _told({"memory": [{"id": "0", "text": fact, "attributed_to": "user"}]})
    return reply(fact)


def fact_in(prompt: str) -> str:
    """The first words of memd's first new message, else of the last statement, else of the prompt."""
    start, end = 0, len(prompt)
    if "\n<messages>\n" in prompt:
        start = prompt.index(">", prompt.rindex("\n<messages>\n") + 12) + 1
        end = prompt.index("</m>", start)
    elif STATEMENT in prompt:
        start = prompt.rindex(STATEMENT)
    return first_words(prompt[start:end].strip())


def first_words(statement: str) -> str:
    """The fact that a statement holds: its first sentence, or whole words of it.

    memd refuses a quote that ends within a word. What follows the first sentence are words drawn at random, of which
    the gate for orders takes one row in a hundred for an order.
    """
    sentence, end, _ = statement.partition(". ")
    start = (sentence + end)[:FACT_CHARS]
    return (start if len(sentence) < FACT_CHARS else start.rpartition(" ")[0] or start).strip()


def reply(quote: str, content: str = "") -> bytes:
    """memd's update with one new fact, whose content is its quote if no other one is given."""
    fact = {"content": content or quote, "evidence": [{"message": 0, "quote": quote}], **FACT}
    return _told({**UPDATE_PARTS, "newFacts": [fact]})


def _told(value: object) -> bytes:
    return message_body(json.dumps(value), {}, "end_turn", cached=True)


def _tool_call(name: str, arguments: dict[str, str]) -> bytes:
    """A reply that calls one tool."""
    body: dict[str, Any] = json.loads(message_body("", {}, "tool_use", cached=True))
    body["content"] = [{"type": "tool_use", "id": "toolu_test", "name": name, "input": arguments}]
    return json.dumps(body).encode()


def _text(content: str | list[dict[str, str]]) -> str:
    """The text of a message, whether or not it comes in blocks."""
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
