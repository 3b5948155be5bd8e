"""LangChain's agents with the memory tools, and LangGraph's graphs with the store, each in its real loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from pydantic import SecretStr
from support import daemon
from support.chat_calls import calling, results_of, system_of

from memd.adapters.langchain import MemdMiddleware, MemdStore, memory_tools
from memd.client import Memd
from memd.config import Settings
from memd.errors import Rejected
from memd.testing import ModelServer

ANA = ("memories", "ana")


def say(model: ModelServer, memd: Memd, text: str, **named: Any) -> str:
    """One run of an agent with the middleware and the tools."""
    chat = pytest.importorskip("langchain_openai").ChatOpenAI(
        model="test", base_url=f"{model.base_url}/v1", api_key=SecretStr("test")
    )
    agent: Any = create_agent(
        chat, tools=memory_tools(memd), middleware=[MemdMiddleware(memd)], system_prompt="Be kind."
    )
    asked = {"messages": [HumanMessage(text)]}
    return str(agent.invoke(asked, {"configurable": {"thread_id": "t", **named}})["messages"][-1].text)


def test_a_model_notes_and_searches(memd: Memd, settings: Settings, model: ModelServer) -> None:
    """What the user says is remembered by the middleware, what the model writes is a note; each user's own."""
    model.raw(calling("memory_save", {"content": "The user likes short answers.", "memory_type": "preference"}))
    model.text("Kept.")
    assert say(model, memd, "I live in Porto.", user_id="ana") == "Kept."
    with daemon(settings):
        memd.flush(wait=True)
    assert {fact["source"] == "agent" for fact in memd.document("ana")["facts"]} == {True, False}
    for user, found in (("ana", True), ("小林", False)):
        model.raw(calling("memory_search", {"query": "Porto"}))
        model.text("There.")
        say(model, memd, "Where?", user_id=user, thread_id="t2")
        assert ("Porto" in results_of(model.requests[-1].body)[0]) is found
        assert ("Porto" in system_of(model.requests[-1].body)) is found


def test_a_run_without_memory_has_no_tools(memd: Memd, model: ModelServer) -> None:
    """They say that memory is switched off."""
    model.raw(calling("memory_save", {"content": "The user likes short answers."}))
    model.text("No.")
    say(model, memd, "Be short.", user_id="ana", enable_memory=False)
    assert "switched off" in results_of(model.requests[-1].body)[0]
    assert memd.document("ana")["facts"] == []


def test_a_graph_has_its_users_memory_as_a_store(memd: Memd) -> None:
    """A node puts, another one searches: notes of the user of this run."""

    def note(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
        store.put(ANA, "style", {"content": "The user likes short answers.", "category": "preference"})
        return {}

    def recall(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
        return {"messages": [("assistant", store.search(ANA, query="answers")[0].value["content"])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node(note)
    graph.add_node(recall)
    graph.add_edge(START, "note")
    graph.add_edge("note", "recall")
    said = graph.compile(store=MemdStore(memd)).invoke({"messages": [("user", "Hi")]})["messages"]
    assert said[-1].text == "The user likes short answers."
    assert "short answers" in memd.inject("ana")


def test_items_are_the_users_facts(memd: Memd) -> None:
    """What people and conversations brought is there under its id; a key of the graph's own is kept."""
    fact_id = memd.add_fact("ana", "The user lives in Porto.")
    store = MemdStore(memd)
    item = store.get(ANA, fact_id)
    assert item is not None
    assert item.value["content"] == "The user lives in Porto."
    assert store.get(("memories", "eve"), fact_id) is None
    store.put(ANA, "k1", {"kind": "Memory", "content": {"content": "The user owns a boat."}})
    store.put(ANA, "k1", {"content": "The user owns a blue boat."})
    assert [found.key for found in store.search(ANA)] == ["k1", fact_id]
    changed = store.get(ANA, "k1")
    assert changed is not None
    assert changed.value["content"] == "The user owns a blue boat."
    store.delete(ANA, "k1")
    assert store.get(ANA, "k1") is None
    store.delete(ANA, "k1")
    assert memd.archived("ana")


def test_a_note_that_is_there_already_gets_the_key(memd: Memd) -> None:
    """Put under a second key it is refused: two items cannot be one fact."""
    memd.add_fact("ana", "The user owns a boat.")
    store = MemdStore(memd)
    store.put(ANA, "k1", {"content": "The user owns a boat."})
    item = store.get(ANA, "k1")
    assert item is not None
    assert len(memd.document("ana")["facts"]) == 1
    with pytest.raises(Rejected, match="E_SAME_FACT"):
        store.put(ANA, "k2", {"content": "The user owns a boat."})


def test_searches_are_filtered_and_paged(memd: Memd) -> None:
    """By equality and by LangGraph's operators; async as well."""
    for number, category in enumerate(("preference", "context", "preference")):
        memd.add_fact("ana", f"The user has boat number {number}.", category=category)
    store = MemdStore(memd)
    found = asyncio.run(store.asearch(ANA, query="boat", filter={"category": "preference"}))
    assert len(found) == 2
    assert all(item.score for item in found)
    assert len(store.search(ANA, filter={"confidence": {"$gte": 0.5}}, limit=2)) == 2
    assert len(store.search(ANA, limit=2, offset=2)) == 1
    with pytest.raises(Rejected, match="E_FILTER"):
        store.search(ANA, filter={"confidence": {"$near": 1}})


@pytest.mark.parametrize("namespace", [(), ("memories",), ("other", "ana"), ("memories", "ana", "more")])
def test_a_namespace_names_one_user(memd: Memd, namespace: tuple[str, ...]) -> None:
    """No search and no list goes over several users."""
    store = MemdStore(memd)
    with pytest.raises(Rejected, match="E_NAMESPACE"):
        store.search(namespace)
    with pytest.raises(Rejected, match="E_NAMESPACE"):
        store.list_namespaces(prefix=namespace[:1] or None)
    assert store.list_namespaces(prefix=ANA) == []
    memd.add_fact("ana", "The user owns a boat.")
    assert store.list_namespaces(prefix=ANA) == [ANA]


def test_what_is_no_fact_is_refused(memd: Memd) -> None:
    """Any other value, a secret, an order: with the code of the gate, and nothing is stored."""
    store = MemdStore(memd)
    for value, code in (
        ({"theme": "dark"}, "E_VALUE"),
        ({"content": "x"}, "E_NOTE_TOO_SHORT"),
        ({"content": "The user's key is sk-ant-api03-" + "a1B2" * 24}, "E_NOTE_SECRET"),
    ):
        with pytest.raises(Rejected, match=code):
            store.put(ANA, "k", value)
    assert memd.document("ana")["facts"] == []
