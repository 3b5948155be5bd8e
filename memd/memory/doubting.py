"""Doubting: how an update puts a fact among the doubtful ones of a draft."""

from __future__ import annotations

from collections.abc import Sequence

from memd.config import ApplySettings
from memd.extraction.update import NewFact
from memd.memory import doubtful
from memd.memory.document import Fact
from memd.memory.doubtful import Why
from memd.memory.draft import Draft
from memd.memory.duplicates import key_of
from memd.memory.facts import confirmations_of, id_of, proven_by, with_proofs
from memd.memory.gates.refusal import is_only_authority
from memd.memory.gates.sensitive import Held


def why_doubtful(reason: str, fact: NewFact, content: str, held: Held, settings: ApplySettings) -> Why | None:
    """Why a person decides on a fact that was refused for this reason; None when nobody does.

    `held`: what its label means; what is to be dropped is kept nowhere.
    """
    if held == "drop":
        return None
    match reason:
        case "sensitive" | "support":
            return reason
    return "authority" if is_only_authority(fact, content, settings) else None


def doubt(draft: Draft, fact: Fact, why: Why, identities: Sequence[str]) -> None:
    """Keep a new fact apart; the same sentence again only counts up. The messages that it quotes are hidden.

    `fact`: with its evidence, and in `replaces` the ids of what it would replace. `identities`: the messages that it
    quotes. A fact that the memory has already is no doubtful one.
    """
    for identity in identities:
        draft.hide(identity)
    key = key_of(fact)
    if any(key_of(other) == key for other in draft.facts.values()):
        return
    same = next((other for other in draft.doubtful.values() if key_of(other) == key), None)
    if same is None:
        new = doubtful.doubted(fact, why, draft.now)
    else:
        again = {**same, "confirmations": confirmations_of(same) + 1, "lastConfirmedAt": draft.now}
        new = {**again, "doubtfulAt": draft.now}
    new = with_proofs(new, [*proven_by(new), *identities])
    draft.used.add(id_of(new))
    draft.doubtful.pop(id_of(new), None)
    draft.doubtful[id_of(new)] = new
