"""The reader: reads documents, and returns blocks and ranked facts. It caches the values derived from a document.

The next read sees every change: each read asks the store for the mark of every document it depends on.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memd.config import RecallSettings, Settings
from memd.context import DEFAULT_AGENT, Bucket, of_project
from memd.errors import Rejected
from memd.memory import refused
from memd.memory.archive_proofs import archive_proofs
from memd.memory.document import Document, Fact, facts_of, user_of
from memd.memory.facts import Scope, content_of, id_of, scope_of
from memd.memory.hand.editing import load_unrepaired
from memd.memory.listing import as_listed
from memd.memory.packed import unpack
from memd.memory.parsing import broken_fields
from memd.memory.projects.members import standing_of
from memd.memory.projects.proofs import is_shared
from memd.memory.projects.rights import may
from memd.memory.scoped import NOWHERE, Places, seen, within
from memd.memory.store.cache import CachedReader
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Accesses
from memd.memory.store.said_reader import read_said
from memd.push.times import moment
from memd.recall.edges import period_of
from memd.recall.inject import Injection, Lines, inject, versioned
from memd.recall.layers import Excerpt, Layer, around_excerpts, around_facts, excerpts_of, of_last_turns
from memd.recall.memories import Memory, alone, merged, with_excerpts
from memd.recall.nearness import Aligned, AskedVector, Comparison, Nearness
from memd.recall.past import Past, as_of
from memd.recall.pending import Pending, PendingMessages
from memd.recall.ranking import Indexed
from memd.recall.search import Found, Hits, Search, check, everything, rank
from memd.recall.vectors import Vectors, load_embedder
from memd.recall.why import why, with_turns
from memd.recall.with_places import visible, with_project, without_shared

if TYPE_CHECKING:
    import redis

MAX_BLOCKS = 8
"""Most cached blocks of one memory; each budget has its own block."""

LAYER_BYTES = 3
"""Bytes that a parsed turn, its line, its excerpts and what is known of them take for each byte of its line."""

MAX_VARIANTS = 8
"""Most conversations and projects for which a memory is cached as they see it."""

DAY_S = 86_400.0
"""Reading notes of projects name the day alone: members do not see when another one was reading."""

OWN_TURNS = 20
"""Turns of the conversation that asks, the last ones, that give it no excerpts: it still has them before it."""


@dataclass
class _Cached:
    """A memory with the values derived from it. Two threads may derive the same value at once, which is harmless."""

    documents: tuple[Document, ...]
    memory: Memory
    settings: RecallSettings
    read_layers: Callable[[], list[Layer]]
    """Reads what was said; only a query asks for it."""

    blocks: dict[int | None, Injection] = field(default_factory=dict)
    variants: dict[Places, _Cached] = field(default_factory=dict)
    """The memory as reads see it that name a conversation or a project."""

    project: Document | None = None
    """Of a variant: the project's document that it has facts of."""

    scopes: frozenset[Scope] = frozenset()
    """Of a variant: the scopes whose facts of the user's own documents it has."""

    near: Aligned | None = None
    """The vectors of its facts, with `vectors.url`; they may be older than the stored ones."""

    @cached_property
    def layers(self) -> list[Layer]:
        return self.read_layers()

    @cached_property
    def indexed(self) -> Indexed:
        every = [fact for document in self.documents for fact in facts_of(document)]
        every += [fact for document in self.documents for fact in within(document, self.scopes)]
        archived = chain.from_iterable(map(archive_proofs, self.documents))
        excerpts = excerpts_of(self.layers, every, archived) if self.settings.excerpt_tokens else ()
        if self.project is not None:
            excerpts = without_shared(excerpts, self.project, user_of(self.documents[0]))
        around = (*around_facts(self.layers, self.memory.facts), *around_excerpts(self.layers, excerpts))
        return Indexed(with_excerpts(self.memory, excerpts), around)

    @cached_property
    def indexed_facts(self) -> Indexed:
        """For a reader that may not read what was said: no turn is an answer, and none finds a fact."""
        return Indexed(self.memory)

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.memory.document, self.settings)

    def size(self) -> int:
        """The bytes of the values derived so far, by estimate."""
        size = sum(getsizeof(block.text) for block in list(self.blocks.values()))
        for name in ("indexed", "indexed_facts"):
            size += getattr(self, name).bytes_taken if name in vars(self) else 0
        if "layers" in vars(self) and self.project is None and not self.scopes:  # variants share them
            size += sum(LAYER_BYTES * layer.said.size for layer in self.layers)
        size += self.near.bytes_taken if self.near is not None else 0
        size += sum(variant.size() for variant in list(self.variants.values()))
        return size + (self.lines.bytes_taken if "lines" in vars(self) else 0)

    def is_of(self, documents: tuple[Document, ...]) -> bool:
        """Whether it was derived from these very document objects."""
        return len(documents) == len(self.documents) and all(
            ours is current for ours, current in zip(self.documents, documents, strict=True)
        )


class Reader:
    """Reads the memories of a data folder. Thread-safe. `server`: called only to read pending messages."""

    check = staticmethod(check)
    """Checks the arguments of a search."""

    def __init__(self, settings: Settings, server: Callable[[], redis.Redis]) -> None:
        self._settings = settings
        self._recall = settings.recall
        if not settings.enabled:
            self._recall = replace(settings.recall, injection_enabled=False)
        self._store = open_store(settings)
        self._documents = CachedReader[_Cached](self._store, settings)
        self._pending = PendingMessages(settings, server, self._store)

    def injection(
        self,
        bucket: Bucket,
        max_tokens: int | None,
        query: str | None,
        places: Places,
        *,
        include_pending: bool,
        include_said: bool,
    ) -> Injection:
        """The block for the next prompt, what answers the query first.

        Raises Rejected, StoreUnavailable, DocumentDamaged.
        """
        search = everything(query) if query else None
        places = self._named(bucket, places)
        buckets = self._buckets_named(bucket, places)
        asked = self._ask(search, buckets) if search is not None else None
        base = self._read(bucket)
        cached = self._seen(bucket, base, places)
        if search is None and not include_pending:
            return self._block(bucket, base, cached, max_tokens)
        first: list[int | Excerpt] = []
        words_only = ""
        if search is not None:
            indexed = cached.indexed if include_said else cached.indexed_facts
            own = self._own_turns(places.thread_id if include_said else None, cached)
            near = self._compare(asked, search, cached, buckets)
            first = [indexed.memory.shown(hit.place) for hit in _ranked(indexed, search, own, near)]
            words_only = near.words_only()
        pending = [message.text for message in self._pending_of(bucket)] if include_pending else []
        block = versioned(inject(cached.lines, self._recall, max_tokens, first=first, pending=pending))
        self._keep(bucket, base)
        return dataclasses.replace(block, words_only=words_only) if words_only else block

    def at_hand(self, bucket: Bucket, max_tokens: int | None = None, places: Places = NOWHERE) -> Injection | None:
        """The cached block if nothing has changed since, else None; costs a `stat`. Raises StoreUnavailable.

        A read that names a project never gets one: who may see it is in another document.
        """
        cached = self._documents.derived(bucket)
        if cached is not None and places != NOWHERE:
            named = self._named(bucket, places).named_in(cached.documents, None)
            cached = None if places.project_id else cached if named == NOWHERE else cached.variants.get(named)
        block = cached.blocks.get(max_tokens) if cached else None
        if cached is None or block is None or not cached.memory.is_good_at(datetime.now(UTC)):
            return None
        documents = self._documents.at_hand(self._buckets(bucket))
        same = all(current is ours for current, ours in zip(documents, cached.documents, strict=True))
        return block if same else None

    def search(
        self,
        bucket: Bucket,
        search: Search,
        places: Places,
        *,
        include_pending: bool,
        include_said: bool,
    ) -> Hits:
        """The facts and excerpts that match, best first. Raises StoreUnavailable, DocumentDamaged, EmbedderFailed."""
        places = self._named(bucket, places)
        buckets = self._buckets_named(bucket, places)
        asked, base = self._ask(search, buckets), self._read(bucket)
        cached = self._seen(bucket, base, places)
        indexed = cached.indexed if include_said else cached.indexed_facts
        if include_pending:
            indexed = indexed.with_pending(self._pending_of(bucket))
        own = self._own_turns(places.thread_id if include_said else None, cached)
        near = self._compare(asked, search, cached, buckets)
        hits = _ranked(indexed, search, own, near)
        self._keep(bucket, base)
        shown: dict[Bucket, list[str]] = {}
        for hit in hits:
            shown.setdefault(_bucket_of(hit, bucket), []).extend([id_of(hit.fact)] if hit.kind == "fact" else [])
        accesses = {part: self.accesses(part, ids) for part, ids in shown.items()}
        found = Hits((_shown(hit, accesses[_bucket_of(hit, bucket)]) for hit in hits), near.words_only())
        self._touch(bucket, hits)
        return found

    def document(self, bucket: Bucket) -> Document:
        """The whole document, read past the cache. Raises StoreUnavailable, DocumentDamaged."""
        return self._store.peek(bucket).document

    def inspect(self, bucket: Bucket) -> list[str]:
        """The broken fields of a document, which is not repaired. Raises StoreUnavailable, DocumentDamaged."""
        return list(broken_fields(load_unrepaired(self._store, bucket).document))

    def seen_document(self, bucket: Bucket, places: Places) -> Document:
        """The document as a read of these places sees it. Raises StoreUnavailable, DocumentDamaged."""
        return seen(self.document(bucket), self._named(bucket, places).scopes)

    def past(self, bucket: Bucket, at: datetime | str, places: Places) -> Past:
        """The memory at a moment, as a read of these places sees it. Raises Rejected, and as `seen_document`."""
        found = at if isinstance(at, datetime) else moment(at)
        if found is None:
            raise Rejected("E_AT", "at must be a time in ISO 8601", "at")
        then = found if found.tzinfo else found.replace(tzinfo=UTC)
        if then > datetime.now(UTC):
            raise Rejected("E_AT", "at must not be in the future", "at")
        return as_of(self.seen_document(bucket, places), then, self._settings.apply.archive_cap)

    def why(self, bucket: Bucket, fact_id: str, places: Places) -> dict[str, Any]:
        """Where a fact comes from, its quotes in their turns. Raises FactUnknown, StoreUnavailable, DocumentDamaged."""
        document = load_unrepaired(self._store, bucket).document
        shown = seen(document, self._named(bucket, places).scopes)
        account = why(shown, fact_id, self.accesses(bucket))
        return with_turns(account, read_said(self._store, bucket, document, self._settings, datetime.now(UTC)))

    def accesses(self, bucket: Bucket, fact_ids: Collection[str] | None = None) -> Accesses:
        """When the facts of a memory were found by searches: of these facts, or of all."""
        return self._store.reading_notes.read(bucket, time.time(), fact_ids)

    def refused(self, bucket: Bucket) -> list[Fact]:
        """The refused facts that are kept, the newest first. Raises StoreUnavailable, DocumentDamaged."""
        return refused.facts_of(load_unrepaired(self._store, bucket).document)[::-1]

    @cached_property
    def _vectors(self) -> Vectors | None:
        name = self._recall.embedder
        return Vectors(load_embedder(name)) if name else None

    def _own_turns(self, thread: str | None, cached: _Cached) -> frozenset[str]:
        """The last turns of the conversation that asks, by its name in the ledger."""
        return frozenset() if thread is None else of_last_turns(cached.layers, thread, OWN_TURNS)

    def _named(self, bucket: Bucket, places: Places) -> Places:
        return places.of_user(bucket.user_id, shared=self._settings.store.shared)

    @cached_property
    def _nearness(self) -> Nearness | None:
        return Nearness(self._settings, self._store) if self._settings.vectors.url is not None else None

    def _ask(self, search: Search, buckets: Sequence[Bucket]) -> AskedVector | None:
        """Begin to embed the query, where an embedder is set: it works while the memory is read."""
        return self._nearness.ask(search.query, buckets) if self._nearness is not None else None

    def _compare(
        self, asked: AskedVector | None, search: Search, cached: _Cached, buckets: Sequence[Bucket]
    ) -> Comparison:
        """Begin to find out how near each fact is to the query; empty where the settings say that words are enough.

        Its use raises EmbedderFailed where the embedder is a function of the app's. Raises StoreUnavailable.
        """
        facts = cached.memory.facts
        if asked is not None and self._nearness is not None:
            cached.near = self._nearness.aligned(cached.near, buckets, facts)
            aligned, cosines = cached.near, self._nearness.cosines
            return Comparison(lambda: cosines(asked, aligned, buckets))
        vectors = self._vectors
        if vectors is not None:
            return Comparison(
                lambda: (dict(enumerate(vectors.cosines(search.query, list(map(content_of, facts))))), "")
            )
        return Comparison(lambda: ({}, ""))

    def _buckets_named(self, bucket: Bucket, places: Places) -> tuple[Bucket, ...]:
        """The buckets that may hold a fact of what a read sees."""
        named = (of_project(places.project_id),) if places.project_id and not bucket.project_id else ()
        return (*self._buckets(bucket), *named)

    def _block(self, bucket: Bucket, base: _Cached, cached: _Cached, max_tokens: int | None) -> Injection:
        block = cached.blocks.get(max_tokens)
        if block is None:
            block = versioned(inject(cached.lines, self._recall, max_tokens))
            if len(cached.blocks) >= MAX_BLOCKS:
                cached.blocks.clear()
            cached.blocks[max_tokens] = block
            self._keep(bucket, base)
        return block

    def _keep(self, bucket: Bucket, cached: _Cached) -> None:
        """Cache the derived values, which may have grown, with the bucket's document."""
        self._documents.attach(bucket, cached.documents[-1], cached, cached.size())

    def _pending_of(self, bucket: Bucket) -> list[Pending]:
        return self._pending.read(self._buckets(bucket))

    def _touch(self, bucket: Bucket, hits: Sequence[Found]) -> None:
        """Record in each memory's reading notes the facts that were found."""
        now = time.time()
        facts = [hit for hit in hits if hit.kind == "fact"]
        for part in {_bucket_of(hit, bucket) for hit in facts}:
            ids = [id_of(hit.fact) for hit in facts if _bucket_of(hit, bucket) == part]
            noted = self._store.reading_notes.note(part, ids, now - now % DAY_S if part.project_id else now)
            if noted and not part.project_id and self._store.marks([part]) == [None]:
                self._store.reading_notes.forget(part.user_id, part.agent_name)  # forgotten meanwhile: so are they

    def _read(self, bucket: Bucket) -> _Cached:
        documents = self._documents.read_all(self._buckets(bucket))
        cached = self._documents.derived(bucket)
        now = datetime.now(UTC)
        if cached is not None and cached.is_of(documents) and cached.memory.is_good_at(now):
            return cached
        memory = merged(documents[0], documents[1], now) if len(documents) > 1 else alone(documents[0], now)
        return _Cached(documents, memory, self._recall, lambda: self._layers(bucket, documents, now))

    def _seen(self, bucket: Bucket, base: _Cached, places: Places) -> _Cached:
        """The memory as a read that names these places sees it; `base` itself where they hold nothing for it."""
        if places == NOWHERE:
            return base
        project = self._project(bucket, places)
        places = places.named_in(base.documents, project)
        if places == NOWHERE:
            return base
        variant, now = base.variants.get(places), datetime.now(UTC)
        if variant is not None and variant.project is project and variant.memory.is_good_at(now):
            return variant
        documents = visible(base.documents, places)
        memory = merged(documents[0], documents[1], now) if len(documents) > 1 else alone(documents[0], now)
        if project is not None:
            memory = with_project(memory, project, now)
        variant = _Cached(
            base.documents, memory, self._recall, lambda: base.layers, project=project, scopes=places.scopes
        )
        if len(base.variants) >= MAX_VARIANTS:
            base.variants.clear()
        base.variants[places] = variant
        return variant

    def _project(self, bucket: Bucket, places: Places) -> Document | None:
        """The document of the project that is named, if the user may read any of it; None as if there were none."""
        if not places.project_id or bucket.project_id or self._settings.store.shared:
            return None
        document = self._documents.read(of_project(places.project_id))
        standing = standing_of(document, bucket.user_id, places.app)
        return document if may(standing, "read") else None

    def _layers(self, bucket: Bucket, documents: Sequence[Document], now: datetime) -> list[Layer]:
        """What was said, of each document."""
        parts = zip(self._buckets(bucket), documents, strict=True)
        return [
            Layer(read_said(self._store, part, document, self._settings, now), part.agent_name)
            for part, document in parts
        ]

    def _buckets(self, bucket: Bucket) -> tuple[Bucket, ...]:
        """The buckets that a reader of this one sees, the user's own first."""
        if bucket.agent_name == DEFAULT_AGENT or not self._recall.with_user_memory:
            return (bucket,)
        return Bucket(bucket.user_id), bucket


def _ranked(indexed: Indexed, search: Search, own: frozenset[str], near: Comparison) -> list[Found]:
    """What answers a search, by words and vectors. `own`: turns that are no answer."""
    period = period_of(search.query, datetime.now(UTC), indexed)
    return rank(indexed, search, near.cosines, indexed.left_out(own, past=period.past), period)


def _bucket_of(hit: Found, bucket: Bucket) -> Bucket:
    """The bucket whose document has what was found."""
    if bucket.project_id:
        return bucket
    return of_project(scope_of(hit.fact).id) if is_shared(hit.fact) else Bucket(bucket.user_id, hit.agent_name)


def _shown(hit: Found, accesses: Accesses) -> Found:
    """A hit as the doors show it; what is no fact has no status."""
    fact = unpack(hit.fact)
    return dataclasses.replace(hit, fact=as_listed(fact, accesses) if hit.kind == "fact" else fact)
