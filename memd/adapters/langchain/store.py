"""LangGraph's `BaseStore` over memd: the items of a user's namespace are the facts of that user's memory.

What a graph puts is a note: an agent's word, by the gates and limits of `memory/hand/notes.py`. It is no store for
anything else: a value is `{"content": text}`, with a `category` if the graph knows one.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from memd.adapters.agent_memory import AgentMemory
from memd.client import Memd
from memd.context import DEFAULT_AGENT
from memd.errors import FactUnknown, Rejected
from memd.memory.document import Document, Fact, facts_of, revised, revision_of
from memd.memory.facts import id_of
from memd.memory.hand import notes
from memd.memory.hand.steps import Edited
from memd.push.times import iso
from memd.recall.search import MAX_LIMIT, MAX_QUERY_CHARS

PREFIX = ("memories",)
"""What the namespaces of all users begin with; the user's id follows. The same as langmem's."""

KIND = "ai"
"""`sourceKind` of a fact that a graph put under a key of its own, which is its `sourceId`."""

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
"""The operators of LangGraph's filters."""


class MemdStore(BaseStore):
    """The store of a graph: `builder.compile(store=MemdStore(memd))`, `create_agent(store=…)`.

    `prefix`: the labels before the user's id; the namespace of a user is exactly `(*prefix, user_id)`. A key is the id
    of a fact, or the graph's own name of it. A search is one user's always: a namespace that names no user is refused
    with Rejected, code E_NAMESPACE, and so is a value that is no fact (E_VALUE). `index` and `ttl` do nothing: memd
    searches the words of all facts, and a note ends when something replaces it.
    """

    __slots__ = ("_agent_name", "_memd", "_prefix")

    def __init__(self, memd: Memd, *, prefix: tuple[str, ...] = PREFIX, agent_name: str = DEFAULT_AGENT) -> None:
        self._memd = memd
        self._prefix = prefix
        self._agent_name = agent_name

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute the operations one after the other. Raises Rejected, StoreUnavailable, DocumentDamaged; those before
        the one that fails are done then.
        """
        return [self._done(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch` in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _done(self, op: Op) -> Result:
        match op:
            case GetOp(namespace, key):
                fact = _named(self._memory(namespace).document(), key)
                return None if fact is None else _item(namespace, fact)
            case SearchOp():
                return self._found(op)
            case PutOp(namespace, key, value):
                self._put(namespace, key, value) if value is not None else self._delete(namespace, key)
                return None
            case ListNamespacesOp():
                return self._namespaces(op)
        raise NotImplementedError(f"MemdStore knows no {type(op).__name__}")

    def _put(self, namespace: tuple[str, ...], key: str, value: Mapping[str, Any]) -> None:
        content, category = _words(value)
        memory = self._memory(namespace)
        rules = self._memd.settings.apply

        def step(document: Document, now: datetime) -> Edited:
            fact = _named(document, key)
            if fact is not None:
                return notes.update(document, id_of(fact), content, category, now, rules)
            return _keyed(document, notes.save(document, content, category, now, rules), key, now)

        memory.change(step)

    def _delete(self, namespace: tuple[str, ...], key: str) -> None:
        memory = self._memory(namespace)
        fact = _named(memory.document(), key)
        if fact is not None:
            try:
                memory.retire(id_of(fact), "deleted by the graph")
            except FactUnknown:  # somebody else was faster
                return

    def _found(self, op: SearchOp) -> list[SearchItem]:
        namespace, most = op.namespace_prefix, op.offset + op.limit
        user_id = self._user(namespace)
        if op.query:
            query = op.query[:MAX_QUERY_CHARS]
            found = self._memd.search(user_id, query, agent_name=self._agent_name, limit=MAX_LIMIT, include_said=False)
            items = [_item(namespace, hit.fact, hit.score) for hit in found if not hit.pending]
        else:
            facts = facts_of(self._memory(namespace).document())
            items = [_item(namespace, fact, None) for fact in reversed(facts)]
        return [item for item in items if _passes(item.value, op.filter or {})][op.offset : most]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """The one namespace of the user whom the prefix names: a store lists no users."""
        paths = [found.path for found in op.match_conditions or () if found.match_type == "prefix"]
        named = [tuple(path) for path in paths if len(path) > len(self._prefix)]
        if not named:
            raise Rejected("E_NAMESPACE", "name a user in the prefix: no store lists the users of memd", "namespace")
        self._user(named[0])
        is_there = bool(facts_of(self._memory(named[0]).document()))
        fits = all(_matches(named[0], condition) for condition in op.match_conditions or ())
        return [named[0][: op.max_depth]][op.offset : op.offset + op.limit] if is_there and fits else []

    def _memory(self, namespace: tuple[str, ...]) -> AgentMemory:
        return AgentMemory(self._memd.settings, self._user(namespace), self._agent_name)

    def _user(self, namespace: tuple[str, ...]) -> str:
        if namespace[:-1] != self._prefix or not namespace:
            shape = ", ".join([*map(repr, self._prefix), "user_id"])
            raise Rejected("E_NAMESPACE", f"a namespace of this store is ({shape})", "namespace")
        return namespace[-1]


def _words(value: Mapping[str, Any]) -> tuple[str, str | None]:
    """The content and the category of a value; langmem's nests them. Raises Rejected."""
    nested = value.get("content")
    value = nested if isinstance(nested, Mapping) else value
    content, category = value.get("content"), value.get("category")
    if not isinstance(content, str) or not isinstance(category, str | None):
        raise Rejected("E_VALUE", 'a value is {"content": text}, and may have a "category"', "value")
    return content, category


def _named(document: Document, key: str) -> Fact | None:
    """The fact that a graph put under this key, else the one with this id."""
    facts = facts_of(document)
    own = (fact for fact in facts if fact.get("sourceKind") == KIND and fact.get("sourceId") == key)
    return next(own, None) or next((fact for fact in facts if id_of(fact) == key), None)


def _keyed(before: Document, edited: Edited, key: str, now: datetime) -> Edited:
    """The edit with the key on its fact. Raises Rejected where it has another one: two items cannot be one fact."""
    facts = list(facts_of(edited.document))
    place = next((at for at, fact in enumerate(facts) if id_of(fact) == edited.fact_id), None)
    if place is None or key == edited.fact_id or facts[place].get("sourceId") == key:
        return edited
    if facts[place].get("sourceId"):
        raise Rejected("E_SAME_FACT", "another item of this namespace says the same", "value")
    facts[place] = {**facts[place], "sourceKind": KIND, "sourceId": key}
    if revision_of(edited.document) == revision_of(before):  # the fact was there, without a key
        return replace(edited, document=revised(edited.document, iso(now), facts=facts))
    return replace(edited, document={**edited.document, "facts": facts})


def _item(namespace: tuple[str, ...], fact: Fact, score: float | None = None) -> SearchItem:
    value = {"content": fact["content"], "category": fact.get("category"), "confidence": fact.get("confidence")}
    created = _time(fact.get("createdAt"))
    changed = _time(fact["updatedAt"]) if fact.get("updatedAt") else created
    key = fact.get("sourceId") if fact.get("sourceKind") == KIND else None
    return SearchItem(namespace, key or id_of(fact), value, created, changed, score)


def _time(text: object) -> datetime:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:  # a document edited by hand
        return datetime.fromtimestamp(0, UTC)


def _passes(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_compares(value.get(name), rule) for name, rule in wanted.items())


def _compares(value: Any, rule: Any) -> bool:
    if not isinstance(rule, Mapping):
        return bool(value == rule)
    unknown = [name for name in rule if name not in _COMPARED]
    if unknown:
        raise Rejected("E_FILTER", f"operators of a filter are {', '.join(_COMPARED)}", "filter")
    try:
        return all(_COMPARED[name](value, limit) for name, limit in rule.items())
    except TypeError:  # a number compared with a text
        return False


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return len(part) == len(path) and all(label in ("*", own) for label, own in zip(path, part, strict=True))
