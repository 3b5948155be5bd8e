"""The evidence of a project's facts: quotes with who said them, without their threads and messages.

Members see each other's quotes, and nothing that names a private conversation. The digest of a message lets only those
who hold it find it again: the speaker, for `why`, and the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable

from memd.context import digest, identity_of_id, is_identity
from memd.memory.document import Fact
from memd.memory.facts import Evidence, created_by, evidence_of


def digest_of(user_id: str, identity: str) -> str:
    """The name of a user's message in a project's ledger and evidence."""
    return digest("project message", user_id, identity, size=18)


def place_of(user_id: str, thread_id: str) -> str:
    """The name of a user's thread in a project's ledger."""
    return digest("project thread", user_id, thread_id)


def shared(evidence: Iterable[Evidence], user_id: str) -> list[Evidence]:
    """Entries of the user's own memory as the project keeps them."""
    return [_shared(entry, user_id) for entry in evidence]


def _shared(entry: Evidence, user_id: str) -> Evidence:
    if "by" in entry:  # of a fact that was shared, and hidden since
        return entry
    thread, message = str(entry.get("thread")), str(entry.get("message"))
    identity = message if is_identity(message) else identity_of_id(thread, message)
    said = {"saidAt": entry["saidAt"]} if "saidAt" in entry else {}
    return {"by": user_id, "message": digest_of(user_id, identity), "quote": str(entry.get("quote"))} | said


def speakers_of(fact: Fact) -> frozenset[str]:
    """The users whose words prove a project's fact, or who wrote it."""
    by = (entry.get("by") for entry in evidence_of(fact))
    return frozenset(user for user in (*by, created_by(fact)) if isinstance(user, str) and user)


def is_shared(fact: Fact) -> bool:
    """Whether a fact is from a project's own document, and not a member's private one."""
    return fact.get("scope") == "project" and fact.get("visibility") in ("members", "public")


def is_of_alone(fact: Fact, user_id: str) -> bool:
    """Whether a project's fact is this user's, and rests on nobody else's words."""
    return speakers_of(fact) == {user_id}
