"""Saves a session that other processes may save as well."""

from __future__ import annotations

from memd.errors import SessionChanged
from memd.session.conversation import Session

ATTEMPTS = 3
"""Of a save, when another process saves the session meanwhile."""


def saved(session: Session) -> None:
    """Save; what another process has saved since comes first then. Raises SessionChanged after some attempts."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            session.save()
        except SessionChanged as error:
            if attempt == ATTEMPTS:
                raise
            session.load_if_exists()
            for turn in error.unsaved:
                session.add(turn)
        else:
            return
