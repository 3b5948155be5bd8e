"""Which fact says the same already: by the established rule, by normalised text, then by likeness."""

from __future__ import annotations

from collections.abc import Iterable

from memd.memory.document import Fact
from memd.memory.facts import person_of
from memd.memory.similar import Alike
from memd.memory.text import normal_key, normal_keys, same_key


class Contents:
    """What the facts of a document say. Facts about different persons never count as the same."""

    def __init__(self, facts: Iterable[Fact], threshold: float) -> None:
        self._threshold = threshold
        self._ids: dict[tuple[str, str], str] = {}
        self._contents: dict[str, tuple[str, str, str]] = {}
        self.put(*facts)

    def put(self, *facts: Fact) -> None:
        """Take facts in; the first one that says something keeps its place."""
        for fact, normal in zip(facts, normal_keys([fact["content"] for fact in facts]), strict=True):
            person, content = person_of(fact), fact["content"]
            key = normal or same_key(content)
            self._ids.setdefault((person, key), fact["id"])
            self._contents[fact["id"]] = (person, key, content)

    def drop(self, fact_id: str) -> None:
        """Let go of a fact."""
        person, key, _ = self._contents.pop(fact_id)
        if self._ids.get((person, key)) == fact_id:
            del self._ids[person, key]

    def same(self, content: str, person: str) -> str | None:
        """The id of the fact that says the same in other spelling, if there is one."""
        return self._ids.get((person, _key(content)))

    def near(self, content: str, person: str) -> str | None:
        """The id of the fact that is most alike, if it is alike enough; among equals the older."""
        if self._threshold >= 1:
            return None
        best, found = self._threshold, None
        wanted = Alike(content, best)
        for fact_id, (whose, key, other) in self._contents.items():
            if whose != person or not wanted.may_be(key):
                continue
            alike = wanted.to(other, best)
            if alike > best or (alike == best and found is None):
                best, found = alike, fact_id
        return found


def _key(content: str) -> str:
    """Equal wherever `strip().casefold()` is; that alone where nothing but punctuation is left."""
    return normal_key(content) or same_key(content)
