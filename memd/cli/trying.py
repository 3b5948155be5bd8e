"""Trying one conversation from the shell: prints what each part did with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from memd.cli.common import Json, echo, echo_json, read_file
from memd.cli.evaluate import Extractor, Model, Setting, chosen_settings
from memd.evaluation.trying import Story, read_memory, read_push, tell
from memd.printable import printable

TEXT_CHARS = 160

_PARTS = {
    "newFacts": "new fact",
    "confirmedFacts": "confirmation",
    "retiredFacts": "retirement",
    "forgottenFacts": "forgetting",
    "reviewedFacts": "review",
    "mergedFacts": "merge",
    "summaries": "summary",
    "hide": "message to hide",
    "profile": "profile",
}


_ENDS = ("added", "confirmed", "retired", "forgotten", "suspended")
"""What may become of a fact, in the order in which it is told."""


def try_(
    file: Annotated[str, typer.Argument(help="A push, or a list of messages, as JSON; - for standard input.")] = "-",
    memory: Annotated[Path | None, typer.Option(help="Start from this memory document.")] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the whole request, too.")] = False,
    extractor: Extractor = None,
    model: Model = None,
    setting: Setting = None,
    as_json: Json = False,
) -> None:
    """Try one conversation: see what is dropped, proposed, stored and refused.

    It goes through filter, signals, prompt, model, gates and document in memory, without a daemon; nothing is written.

    Example: memd try conversation.json --prompt

    Example: memd try --memory memory.json --set apply.confidence_threshold=0.8 < messages.json
    """
    settings = chosen_settings(extractor, model, setting or ())
    push = read_push(read_file(file), settings)
    document = read_memory(read_file(str(memory)), push) if memory else None
    story = tell(push, document, settings, datetime.now(UTC))
    if as_json:
        echo_json(story)
    else:
        for line in _told(story, prompt=prompt):
            echo(line)
    if code := next(filter(None, (request["exit_code"] for request in story["requests"])), 0):
        raise typer.Exit(code)


def _told(story: Story, *, prompt: bool) -> Iterator[str]:
    yield _head("The turns")
    for number, turn in enumerate(story["turns"], 1):
        yield from _turn(number, turn)
    for request in story["requests"]:
        yield from _asked(request, prompt=prompt)
    if not story["requests"]:
        yield _head("No request")
        yield f"  nothing to read: {story['skipped']}"


def _turn(number: int, turn: Story) -> Iterator[str]:
    dropped = typer.style(f"dropped ({turn['dropped']}): ", fg=typer.colors.YELLOW) if turn["dropped"] else ""
    yield f"  {number:>3} {turn['role']:<9} {dropped}{_cut(turn['text'])}"
    if turn["not_kept"]:
        yield typer.style(f"      not kept: {turn['not_kept']}", fg=typer.colors.YELLOW)
    for piece in turn["cut"]:
        yield f"      cut out: {_cut(piece)}"
    if turn["redacted"]:
        yield "      redacted: " + ", ".join(f"{count} {kind}" for kind, count in turn["redacted"].items())
    for signal, words in turn["signals"].items():
        yield f'      signal {signal}: "{_cut(words)}"'


def _asked(request: Story, *, prompt: bool) -> Iterator[str]:
    if prompt:
        yield _head("The request: system")
        yield _lines(request["system"])
        yield _head("The request: user")
        yield _lines(request["prompt"])
    if request["failure"]:
        yield _head("No reply")
        yield f"  {request['failure']}"
        return
    yield _head(f"What {request['model']} proposed")
    yield from _proposed(request["proposed"]) if any(request["proposed"].values()) else ["  nothing"]
    yield _head("The result")
    for word in _ENDS:
        for fact in request[word]:
            yield f"  {word:<9} [{fact['category']} | {fact['confidence']:.2f}] {_cut(fact['content'])}"
    for refusal in request["refused"]:
        rule = f" ({refusal['rule']})" if refusal["rule"] else ""
        reason = typer.style(f"{refusal['reason']}{rule}", fg=typer.colors.YELLOW)
        text = f": {_cut(refusal['text'])}" if refusal["text"] else ""
        yield f"  refused   {reason}, {_PARTS.get(refusal['part'], refusal['part'])}{text}"
    if request["mended"]:
        yield "  mended    " + ", ".join(f"{count} {kind}" for kind, count in request["mended"].items())
    if not any(request[word] for word in (*_ENDS, "refused", "summaries")):
        yield "  nothing changed"
    yield from _paid(request)


def _proposed(update: dict[str, Any]) -> Iterator[str]:
    for fact in update["newFacts"]:
        labels = [fact["category"], f"{fact['confidence']:.2f}", fact["scope"], fact["durability"], fact["authority"]]
        yield f"  new fact  [{' | '.join(labels)}] {_cut(fact['content'])}"
        for evidence in fact["evidence"]:
            yield f'            quote: "{_cut(evidence["quote"])}"'
        if fact["replaces"]:
            yield f"            replaces {', '.join(map(printable, fact['replaces']))}"
    for name in ("confirmedFacts", "retiredFacts", "forgottenFacts", "reviewedFacts", "mergedFacts"):
        for item in update[name]:
            words = item.get("quote") or item.get("content") or item.get("verdict") or ""
            yield f"  {_PARTS[name]:<9} {_cut(str(item.get('id', '')))} {_cut(words)}"
    for name, text in update["summaries"].items():
        yield f"  summary   {name}: {_cut(text)}"


def _paid(request: Story) -> Iterator[str]:
    usage = request["usage"]
    tokens = ", ".join(f"{count} {name.removesuffix('_tokens')}" for name, count in usage.items())
    price = "price unknown" if request["usd"] is None else f"${request['usd']:.6f}"
    yield f"\n{tokens} tokens; {price}; {request['seconds']:.1f} s"


def _head(text: str) -> str:
    return "\n" + typer.style(text, bold=True)


def _cut(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= TEXT_CHARS else line[: TEXT_CHARS - 1] + "…"


def _lines(text: str) -> str:
    return "\n".join(f"  {printable(line)}" for line in text.splitlines())
