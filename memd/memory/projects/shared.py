"""A project as a request shows it to one member's extractor."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from memd.memory.document import Fact
from memd.memory.facts import id_of


class SharedProject(NamedTuple):
    """The facts that a project's members share, and the ids of those that are shown (None: all)."""

    facts: Sequence[Fact] = ()
    ids: Collection[str] | None = None

    @property
    def shown(self) -> Iterator[Fact]:
        """The facts that are shown."""
        return (fact for fact in self.facts if self.ids is None or id_of(fact) in self.ids)


Projects = Mapping[str, SharedProject]
"""The projects of a request's marks to which its user may add, by id."""

NO_PROJECTS: Projects = MappingProxyType({})
