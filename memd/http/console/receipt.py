"""Receipt: where a push is, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memd.errors import Rejected
from memd.http.console.page import Shown, Visit
from memd.inbox.keys import KeyState, PendingKey
from memd.inbox.receipt import Outcome

StepState = Literal["done", "now", "later", "failed"]

WAITS: dict[KeyState, str] = {
    "waiting": "It waits for the conversation to fall quiet; later turns of it are merged.",
    "due": "It waits for a free worker.",
    "parked": "Another key of the same memory is claimed; this one comes next.",
    "rationed": "A budget is used up; it waits and goes on merging.",
    "batched": "Its request is in a batch; the answer can take up to a day.",
    "claimed": "A worker has it, and the model reads it.",
}
"""What a key in this state waits for."""

SKIPPED = {
    "already_known": "The memory has taken in these messages before.",
    "no_user_turn": "No message of the user is in it.",
    "no_reply": "The reply is missing yet; push the turn again with it.",
    "acknowledgement": "A bare yes or thanks, which says nothing by itself.",
    "forgotten": "The user was forgotten after these messages were pushed.",
    "off_the_record": "The user asked not to keep it.",
    "forget_wish": "The user asked to forget something; no more was in it.",
}
"""Why a push was skipped, in words; any other reason is shown as it is."""


WRONG_ID = "This is no id of a receipt: it has the form <key>.<generation>.<number>."


@dataclass(frozen=True, slots=True)
class PushStep:
    """One step on the way of a push. `name`: pushed, pending, due, claimed, or how it ended; `at`: when, if known."""

    name: str
    state: StepState
    at: datetime | None = None
    words: str = ""


def receipt(visit: Visit) -> Shown:
    """The page: a form, and the way of the push that it names. Live until the push has ended."""
    receipt_id = visit.value("id").strip()
    user_id = visit.user if visit.value("user") else None
    data = {"id": receipt_id, "user": user_id or "", "needs_user": not visit.login.token.users.every}
    if not receipt_id or (data["needs_user"] and user_id is None):
        return Shown("receipt.html", {**data, "outcome": None, "steps": (), "keys": (), "problem": ""})
    memd = visit.service.memd
    try:
        outcome = memd.receipt(receipt_id, user_id=user_id)
        keys = () if outcome.ended else memd.key_of_receipt(receipt_id, user_id=user_id)
    except Rejected:
        return Shown("receipt.html", {**data, "outcome": None, "steps": (), "keys": (), "problem": WRONG_ID}, 422)
    steps = tuple(steps_of(outcome, keys))
    shown = {**data, "outcome": outcome, "steps": steps, "keys": keys, "problem": "", "skipped": SKIPPED}
    return Shown("receipt.html", shown, 404 if outcome.state == "unknown" else 200)


def steps_of(outcome: Outcome, keys: tuple[PendingKey, ...]) -> Iterator[PushStep]:
    """The steps of a push, those that it has behind it first. None of an unknown one."""
    if outcome.state == "unknown":
        return
    yield PushStep("pushed", "done")
    if outcome.ended:
        yield from (PushStep(name, "done") for name in ("pending", "due", "claimed"))
        yield PushStep(outcome.state, "failed" if outcome.state == "dead" else "done")
        return
    key = next((key for key in keys if (key.state == "claimed") == (outcome.state == "claimed")), None)
    state: KeyState = key.state if key else "claimed" if outcome.state == "claimed" else "waiting"
    reached = {"waiting": 0, "rationed": 1, "parked": 1, "due": 1, "batched": 1, "claimed": 2}[state]
    due_at = outcome.due_at or (key.due_at if key else None)
    for place, name in enumerate(("pending", "due", "claimed")):
        words = WAITS[state] if place == reached else ""
        at = due_at if name == "due" else None
        yield PushStep(name, "done" if place < reached else "now" if place == reached else "later", at, words)
    yield PushStep("end", "later")
