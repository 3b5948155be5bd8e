"""`recent`: above `compact_tokens` the newest turns within `keep_tokens` stay, and the rest becomes the summary."""

from __future__ import annotations

from collections.abc import Sequence

from memd.config import SessionSettings
from memd.session.chat import ChatTurn
from memd.session.plans import Plan, window_of


def plan(turns: Sequence[ChatTurn], settings: SessionSettings) -> Plan:
    """From the newest turn back, up to the first that does not fit. The newest stays, however large it is."""
    window = window_of(turns, settings)
    if window.tokens <= settings.compact_tokens:
        return window.unchanged()
    place, behind = window.newest, window.tokens_behind()
    for earlier in reversed(window.places):
        if earlier < place and behind[earlier] > settings.keep_tokens:
            break
        place = earlier
    return window.cut_before(place)._replace(must=window.tokens > settings.max_tokens)
