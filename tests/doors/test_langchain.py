"""The middleware of LangChain's agents: it reads before the model, pushes after the agent, loses nothing between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from support import daemon
from support.inbox_view import advance
from support.langchain_chat import Chat, Scripted, calls_weather, weather

from memd.adapters.langchain import MemdMiddleware
from memd.client import Memd
from memd.config import Settings
from memd.context import Key
from memd.errors import Rejected
from memd.extraction.prompt import parse_messages
from memd.inbox import library
from memd.testing import ModelServer

Configured = Callable[..., Settings]


@pytest.fixture
def chat(configured: Configured, client: redis.Redis) -> Chat:
    """A conversation; what is pushed without haste is due in five minutes."""
    settings = configured(scheduler__quiet_s=300, scheduler__max_wait_s=300)
    library.install(client, settings)
    return Chat(Memd(settings), client, Scripted())


def test_an_agent_remembers_its_user(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """What is said to an agent in one thread stands in the system message of the next one, as data, and in no state."""
    first = Chat(memd, client, Scripted(), thread="monday")
    first.say("I live in Porto.")
    assert first.model.system == "Be kind."
    with daemon(settings):
        memd.flush(user_id="ana", wait=True)
    second = Chat(memd, client, Scripted(), thread="tuesday")
    told = second.say("Where do I live?")
    assert second.model.system.startswith("Be kind.\n\n<memory>\nWhat is remembered")
    assert "not instructions" in second.model.system
    assert "Porto" in second.model.system.partition("<memory>")[2]
    assert not any("<memory>" in message.text for message in told)
    assert second.pending == [("user", "Where do I live?"), ("assistant", "Noted.")]


def test_an_async_agent_remembers_its_user(memd: Memd, settings: Settings, client: redis.Redis) -> None:
    """The same with ainvoke, in Chinese, with the user in the run's context; many loops may use one middleware."""

    @dataclass
    class Context:
        user_id: str

    model = Scripted()
    agent = create_agent(model, middleware=[MemdMiddleware(memd)], context_schema=Context)

    def say(thread: str, text: str) -> None:
        asked = agent.ainvoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}, context=Context("小林")
        )
        asyncio.run(asked)

    say("周一", "我住在杭州。")
    with daemon(settings):
        memd.flush(user_id="小林", wait=True)
    say("周二", "我住在哪里？")
    assert "杭州" in model.system.partition("<memory>")[2]
    assert client.exists(f"{{memd}}:ctx:{Key('周二', '小林').hash}")


@pytest.mark.parametrize(("user", "code"), [(None, "E_USER_ID_MISSING"), ("bad\x07id", "E_USER_ID_CTRL")])
def test_a_run_without_a_usable_user_is_refused(chat: Chat, user: Any, code: str) -> None:
    """An agent that does not know whom it talks to fails before the model is asked, with code and field."""
    chat.user = user
    with pytest.raises(Rejected, match=code):
        chat.say("I live in Porto.")
    assert chat.model.asked == []


def test_a_run_without_a_thread_is_refused(chat: Chat) -> None:
    """Without a thread there is nothing that messages could belong to."""
    agent = create_agent(Scripted(), middleware=[MemdMiddleware(chat.memd, user_id="ana")])
    with pytest.raises(Rejected, match="E_THREAD_ID_MISSING"):
        agent.invoke({"messages": [HumanMessage("I live in Porto.")]})


def test_an_agent_bound_to_a_user_serves_no_other(chat: Chat) -> None:
    """With `user_id` given, what a run says of its user is not looked at."""
    bound = Chat(chat.memd, chat.client, Scripted(), [MemdMiddleware(chat.memd, user_id="ana")], user="eve")
    bound.say("I live in Porto.")
    assert bound.pending == []
    assert chat.pending == [("user", "I live in Porto."), ("assistant", "Noted.")]


def test_each_message_is_pushed_once(chat: Chat) -> None:
    """A run leaves nothing waiting and notes how far it came, so that the next one pushes only what is new."""
    for text in ("I live in Porto.", "I like tea.", "I work as a nurse."):
        chat.say(text)
    told = [text for role, text in chat.pending if role == "user"]
    assert told == ["I live in Porto.", "I like tea.", "I work as a nurse."]
    kept = chat.agent.get_state({"configurable": {"thread_id": "t"}}).values
    assert len(chat.pending) == 6
    assert (kept["memd_waiting"], kept["memd_pushed"]) == ([], kept["messages"][-1].id)


def test_tools_and_hidden_messages_are_not_the_users_words(chat: Chat) -> None:
    """Tool calls, their results and what the app hides stay out; of a picture there is only that there was one.

    The user's answer to a form is hidden too, but the user's own.
    """
    chat.model.answers = [calls_weather(), AIMessage("It rains.")]
    chat.say("I live in Porto, how is the weather?")
    chat.say(HumanMessage("The user looks sad.", additional_kwargs={"hide_from_ui": True}))
    picture = {"type": "image", "base64": "A" * 2_000_000, "mime_type": "image/png"}
    chat.say(HumanMessage([{"type": "text", "text": "I painted this."}, picture]))
    answer = {"kind": "human_input_response", "response_kind": "text", "value": "In oil."}
    chat.say(HumanMessage("In oil.", additional_kwargs={"hide_from_ui": True, "human_input_response": answer}))
    assert [text for _, text in chat.pending] == [
        "I live in Porto, how is the weather?", "It rains.", "Noted.", "I painted this.", "Noted.", "In oil.", "Noted.",
    ]  # fmt: skip


@pytest.mark.parametrize("summary_first", [True, False])
def test_what_a_summary_throws_away_is_pushed_at_once(chat: Chat, summary_first: bool) -> None:
    """A summary that replaces the user's words in the middle of a run costs nothing: they are pushed, due at once.

    The summary itself, which LangChain words as a user's message, is not pushed as one.
    """
    memory = MemdMiddleware(chat.memd)
    summary = SummarizationMiddleware(Scripted(), trigger=("messages", 3), keep=("messages", 1))
    around: list[AgentMiddleware[Any, Any, Any]] = [summary, memory] if summary_first else [memory, summary]
    talk = Chat(chat.memd, chat.client, Scripted(answers=[calls_weather()]), around)
    left = talk.say("I live in Porto, how is the weather?")
    assert left[0].text.startswith("Here is a summary")
    assert not any("I live in Porto" in message.text for message in left)
    assert talk.pending == [("user", "I live in Porto, how is the weather?"), ("assistant", "Noted.")]
    assert talk.is_due


def test_what_is_said_without_a_summary_is_not_due_at_once(chat: Chat) -> None:
    """An ordinary run waits for its conversation to fall quiet."""
    chat.say("I live in Porto.")
    assert chat.pending
    assert not chat.is_due
    advance(chat.client, 300_000)
    assert chat.is_due


def test_an_outage_neither_stops_the_agent_nor_loses_what_was_said(
    chat: Chat, caplog: pytest.LogCaptureFixture
) -> None:
    """While memd is away the agent answers and it is logged, without a word of the talk; later all is pushed."""
    chat.client.function_flush()
    chat.client.flushall()
    with caplog.at_level(logging.WARNING, "memd"):
        assert chat.say("I live in Porto.")[-1].text == "Noted."
    assert "push_delayed" in caplog.text
    assert "Porto" not in caplog.text
    library.install(chat.client, chat.memd.settings)
    chat.say("I like tea.")
    assert [text for role, text in chat.pending if role == "user"] == ["I live in Porto.", "I like tea."]


def test_a_memory_that_cannot_be_read_does_not_stop_the_agent(chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    """The agent answers without its memory, and it is logged."""
    users = chat.memd.settings.data_dir / "users"
    users.mkdir(mode=0o700)
    (users / "ana").write_text("not a folder")
    with caplog.at_level(logging.WARNING, "memd"):
        chat.say("I live in Porto.")
    assert "inject_failed" in caplog.text
    assert chat.model.system == "Be kind."


def test_a_message_that_memd_refuses_does_not_take_others_along(chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    """One with a bad id is said in the log, with its code; the rest of the run is pushed, and the next ones are."""
    with caplog.at_level(logging.ERROR, "memd"):
        chat.say(HumanMessage("I live in Porto.", id="bad\x07"))
    chat.say("I like tea.")
    assert "E_MESSAGE_ID_CTRL" in caplog.text
    assert chat.pending == [("assistant", "Noted."), ("user", "I like tea."), ("assistant", "Noted.")]


def test_a_message_that_is_too_long_is_pushed(chat: Chat) -> None:
    """Head and tail of it, as through any door."""
    chat.say("I live in Porto." + "x" * 100_000 + "I like tea.")
    (_, said), reply = chat.pending
    assert (said[:16], said[-11:], reply) == ("I live in Porto.", "I like tea.", ("assistant", "Noted."))


def test_a_run_that_failed_is_made_up_for(chat: Chat) -> None:
    """What the user said in a run whose model failed is pushed by the next run of the thread."""

    class Failing(Scripted):
        def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            answer = super()._generate(messages)
            if len(self.asked) == 1:
                raise ConnectionError
            return answer

    talk = Chat(chat.memd, chat.client, Failing())
    with pytest.raises(ConnectionError):
        talk.say("I live in Porto.")
    assert talk.pending == []
    talk.say("I like tea.")
    assert [text for role, text in talk.pending if role == "user"] == ["I live in Porto.", "I like tea."]


def test_a_small_budget_holds_what_the_message_is_about(chat: Chat) -> None:
    """With `relevant`, the facts that answer the last message come first; without it, the block is the same for all."""
    chat.memd.add_fact("ana", "The user is allergic to peanuts.")
    for number in range(20):
        chat.memd.add_fact("ana", f"The user collects stamps of the year {1900 + number}.")
    system = {}
    for relevant in (True, False):
        talk = Chat(chat.memd, chat.client, Scripted(), [MemdMiddleware(chat.memd, max_tokens=60, relevant=relevant)])
        talk.say("May I eat peanuts?")
        system[relevant] = talk.model.system
    assert "peanuts" in system[True]
    assert "peanuts" not in system[False]
    long = Chat(chat.memd, chat.client, Scripted(), [MemdMiddleware(chat.memd, relevant=True)])
    long.say("x" * 30_000)
    assert "<memory>" in long.model.system


def test_an_app_that_sends_all_of_it_again_is_not_heard_twice(
    memd: Memd, asking: Configured, model: ModelServer, client: redis.Redis
) -> None:
    """Without a checkpointer LangGraph gives old messages new ids each time; `resent` knows them by what they say."""
    settings = asking()
    agent = create_agent(Scripted(), middleware=[MemdMiddleware(Memd(settings), user_id="ana", resent=True)])
    history: list[AnyMessage] = []
    with daemon(settings):
        for text in ("I live in Porto.", "I like tea."):
            again = [message.model_copy(update={"id": None}) for message in history]
            state = agent.invoke({"messages": [*again, HumanMessage(text)]}, {"configurable": {"thread_id": "t"}})
            history = state["messages"]
            memd.flush(user_id="ana", wait=True)
    read = [message for call in model.requests for message in parse_messages(call.body["messages"][-1]["content"])]
    assert [fact["content"] for fact in memd.document("ana")["facts"]] == ["I live in Porto.", "I like tea."]
    assert [message.content for message in read if message.role == "user"] == ["I live in Porto.", "I like tea."]
    assert client.zcard("{memd}:due") == 0


def test_a_summary_does_not_make_an_app_that_sends_all_again_heard_twice(chat: Chat) -> None:
    """What was pushed in the middle of a run, when a summary threw it away, is known when the app sends it again."""
    summary = SummarizationMiddleware(Scripted(), trigger=("messages", 3), keep=("messages", 1))
    around: list[AgentMiddleware[Any, Any, Any]] = [summary, MemdMiddleware(chat.memd, user_id="ana", resent=True)]
    agent = create_agent(Scripted(answers=[calls_weather()]), tools=[weather], middleware=around)
    first: list[AnyMessage] = [HumanMessage("I live in Porto.")]
    for asked in (first, [*first, AIMessage("Noted."), HumanMessage("I like tea.")]):
        agent.invoke({"messages": [*asked]}, {"configurable": {"thread_id": "t"}})
    told = ["I live in Porto.", "Noted.", "I like tea.", "Noted."]
    assert [text for _, text in chat.pending] == told
