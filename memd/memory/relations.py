"""Relations: somebody who is no longer the user's partner, boss or neighbour is not called so by older facts either."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from memd.memory.document import Fact
from memd.memory.draft import Draft
from memd.memory.facts import content_of, is_manual, subject_of
from memd.memory.sayings import earlier, of_fact
from memd.memory.text import CJK, fold
from memd.push.patterns import Lists

_LISTS = Lists(Path(__file__).with_suffix(""), "former", "partners", "parted")
_APPOSITION = r"(?:\s?[,，][^.,;:!?。，；：！？]{1,40}[,，])?"
_BETWEEN = _APPOSITION + r"(?:[^\s.,;:!?。，；：！？]*\s){0,5}[^\s.,;:!?。，；：！？]{0,12}"
"""What may stand between a name and the words that say that two people have parted: few words, and an apposition."""

_KANA = re.compile("[\u3040-\u30ff]")
_CJK = re.compile(f"[{CJK}]")


def end_relations(draft: Draft) -> None:
    """Mark the relationships that new facts end in all facts about the same person that were not said later."""
    for new in [draft.facts[fact_id] for fact_id in draft.added if fact_id in draft.facts]:
        for fact_id, fact in [one for one in draft.facts.items() if "subject" in one[1]]:
            person, relationship = subject_of(fact)
            now = _now(new, person, relationship) if person and relationship else ""
            if now and not is_manual(fact) and not earlier(of_fact(new), of_fact(fact)):
                draft.change(fact_id, subject={"person": person, "relationship": now})


def _now(new: Fact, person: str, relationship: str) -> str:
    """What a person is to the user since a new fact ended their relationship; empty where it did not."""
    named, states = subject_of(new)
    if fold(named) == fold(person) and (_was(states) == fold(relationship) or _is_over(new, relationship)):
        return states
    if (named and fold(named) != fold(person)) or not _LISTS["partners"].fullmatch(fold(relationship)):
        return ""
    return _former(relationship) if any(_parted(fold(content_of(new)), fold(person))) else ""


def _was(relationship: str) -> str:
    """What a relationship was that says itself that it is over; else empty."""
    folded = fold(relationship)
    return rest if (rest := _LISTS["former"].sub("", folded).strip()) != folded else ""


def _is_over(new: Fact, relationship: str) -> bool:
    """Whether a sentence calls the relationship a former one ("Joel, a former student of the user's, is ...")."""
    sentence, ended = fold(content_of(new)), fold(relationship)
    behind = (sentence[found.end() :].lstrip() for found in _LISTS["former"].finditer(sentence))
    return bool(ended) and any(rest.startswith(ended) for rest in behind)


def _parted(sentence: str, person: str) -> Iterator[bool]:
    """Whether a sentence says near this name, which has no possessive, that two people have parted."""
    name = rf"(?<![a-zà-ÿ]){re.escape(person)}(?!'|s\b|的|の)" if not _CJK.search(person) else rf"{person}(?![的の])"
    for found in _LISTS["parted"].finditer(sentence):
        yield re.search(rf"{name}(?![a-z]){_BETWEEN}$", sentence[: found.start()]) is not None
        yield re.match(rf"{_BETWEEN}{name}", sentence[found.end() :]) is not None


def _former(relationship: str) -> str:
    """A relationship that is over, in the manner of its language."""
    if not _CJK.search(relationship):
        return f"ex-{relationship}"
    return f"{'元' if _KANA.search(relationship) else '前'}{relationship}"
