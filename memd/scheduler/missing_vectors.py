"""Missing vectors: once an hour, makes those that failed after their commit, or that another embedder has made.

Also those of facts that came by hand, by an import, or before `vectors.url` was set.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from memd.context import Bucket
from memd.errors import EmbedderFailed
from memd.events import Event
from memd.recall.embedded import Embedded, buckets_of
from memd.scheduler.walks import EndRound, Walk

TRIES = 3
AGAIN_S = 120.0
"""Seconds until the next round when the embedder fails."""


class MissingVectors(Walk):
    """Looks at all memories once an hour, and at once when the embedder has changed. With `vectors.url` only."""

    name = "vectors"
    every_s = 3_600.0

    @property
    def round_name(self) -> str:
        """The name of the round in the inbox: by embedder."""
        return f"vectors-{self._embedded.name.hex()}"

    def visit(self, bucket: Bucket) -> None:
        """Make the vectors that one memory lacks. Raises EndRound when the embedder fails."""
        try:
            made = self._embedded.make(bucket, tries=TRIES)
        except EmbedderFailed as error:
            self._log.warning(Event.VECTORS_DELAYED, code=str(error).partition(":")[0])
            raise EndRound(AGAIN_S) from None
        if made.written or made.refused:
            name = self._store.pseudonym(bucket.hash)
            self._log.info(Event.VECTORS_MADE, bucket=name, facts=made.written, refused=made.refused)

    def buckets(self) -> Iterator[Bucket]:
        """The memories to visit, the projects' included."""
        return buckets_of(self._store, shared=self._settings.store.shared)

    @cached_property
    def _embedded(self) -> Embedded:
        return Embedded(self._settings, self._store)
