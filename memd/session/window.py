"""The window: the turns of a session that the next model call gets. Pure: nothing is stored or asked here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memd.config import SessionSettings
from memd.session.chat import SUMMARY_HEAD, ChatTurn, Text
from memd.session.pairs import paired
from memd.session.plans import Plan, window_of
from memd.session.shrinking import shrunk
from memd.session.strategies import auto, recent, transcript

STRATEGIES: dict[str, Callable[[Sequence[ChatTurn], SessionSettings], Plan]] = {
    "recent": recent.plan,
    "auto": auto.plan,
    "transcript": transcript.plan,
}
"""By the name in `session.strategy`."""

ACKNOWLEDGED = "Understood. Continuing."


def window(turns: Sequence[ChatTurn], settings: SessionSettings) -> tuple[ChatTurn, ...]:
    """The turns as the next model call gets them: tool rounds whole, old ones short."""
    return shrunk(paired(turns), settings)


def plan(turns: Sequence[ChatTurn], settings: SessionSettings) -> Plan:
    """What the chosen strategy does with the turns. Below its limits it keeps all of them, paired."""
    return STRATEGIES[settings.strategy](paired(turns), settings)


def plan_now(turns: Sequence[ChatTurn], settings: SessionSettings) -> Plan:
    """What a compaction by hand does: whatever the limits are, only the newest turn stays."""
    return window_of(paired(turns), settings).all_but_newest()


def folded(plan: Plan, summary: str) -> tuple[ChatTurn, ...]:
    """The turns of the session after a plan: those that it keeps, behind the summary of the others."""
    if not plan.summarise:
        return plan.keep
    head = next((place for place, turn in enumerate(plan.keep) if turn.role != "system"), len(plan.keep))
    turns = [ChatTurn("user", (Text(SUMMARY_HEAD + summary),), kind="summary")]
    if plan.keep[head:] and plan.keep[head].role != "assistant":  # else its words and the user's would be one message
        turns.append(ChatTurn("assistant", (Text(ACKNOWLEDGED),), kind="summary"))
    return (*plan.keep[:head], *turns, *plan.keep[head:])
