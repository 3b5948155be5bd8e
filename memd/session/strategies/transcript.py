"""`transcript`: above `transcript_tokens` everything but the newest turn becomes the summary."""

from __future__ import annotations

from collections.abc import Sequence

from memd.config import SessionSettings
from memd.session.chat import ChatTurn
from memd.session.plans import Plan, window_of


def plan(turns: Sequence[ChatTurn], settings: SessionSettings) -> Plan:
    """The newest turn is what the model has to answer, with the results of tools if it brings them."""
    window = window_of(turns, settings)
    return window.all_but_newest() if window.tokens > settings.transcript_tokens else window.unchanged()
