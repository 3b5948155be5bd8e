"""The tutorial: from a push to a memory, one concept a test. Real server, scheduler, workers and HTTP model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest
import redis
from support import daemon, ended, wait_for

from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.context import Bucket
from memd.errors import Rejected
from memd.extraction.prompt import SENSITIVE
from memd.inbox import verbs
from memd.memory.store.json_store import open_store
from memd.testing import ModelServer, facts_from_messages

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]


def turns(*texts: str) -> list[dict[str, str]]:
    """User turns and replies in turn, each with an id."""
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text, "id": f"m{n}"} for n, text in enumerate(texts)]


def facts(app: Memd, user: str) -> list[str]:
    return [fact["content"] for fact in app.document(user)["facts"]]


def test_a_conversation_becomes_memory(memd: Memd, settings: Settings) -> None:
    """Push a conversation, flush, and the user's document holds what was said, with its evidence."""
    with daemon(settings):
        pushed = memd.push(turns("I live in Porto.", "A fine city."), thread_id="t", user_id="ana")
        assert pushed.status == "queued"
        result = memd.flush(user_id="ana", wait=True)
    assert (result.counts, result.timed_out) == ({"stored": 1}, False)
    fact = memd.document("ana")["facts"][0]
    assert "Porto" in fact["content"]
    assert fact["evidence"][0]["quote"] in "I live in Porto."
    assert fact["source"] == "t"


def test_a_chinese_conversation_becomes_memory(memd: Memd, settings: Settings) -> None:
    """The same in Chinese: what the user says of themselves is remembered in their language."""
    with daemon(settings):
        memd.push(turns("我住在杭州。", "杭州很美。"), thread_id="线程", user_id="小林", now=True)
        memd.flush(wait=True)
    assert any("杭州" in content for content in facts(memd, "小林"))


def test_any_redis_client_can_push(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """One RPUSH of JSON, in any language's client, and the conversation becomes memory."""
    push = {"v": 1, "thread_id": "t", "user_id": "raw", "messages": turns("I live in Porto.", "Nice."), "now": True}
    with daemon(settings):
        client.rpush("memd:in", orjson.dumps(push))
        wait_for(lambda: facts(memd, "raw"), "the raw push is remembered")
    assert client.llen("memd:in") == 0


def test_a_bad_raw_push_is_kept_and_the_rest_goes_on(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """What cannot be read goes to the dead with a code; the push behind it is remembered."""
    good = {"thread_id": "t", "user_id": "raw", "messages": turns("I live in Porto.", "Nice."), "now": True}
    client.rpush("memd:in", b'{"thread_id": "t", "thread_id": "t"}', b"\xff", orjson.dumps(good))
    with daemon(settings):
        wait_for(lambda: facts(memd, "raw"), "the good push is remembered")
    status = memd.status()
    assert status.dead == 2
    assert all(reason.startswith("E_") for reason in status.by_reason)


def test_a_receipt_tells_the_end(memd: Memd, settings: Settings) -> None:
    """The receipt of a push is asked for its state until it has ended, and then says which facts came of it."""
    pushed = memd.push(turns("My name is Ana.", "Hello Ana."), thread_id="t", user_id="ana")
    assert pushed.id
    assert pushed.due_at
    assert memd.receipt(pushed.id).state == "pending"
    with daemon(settings):
        wait_for(lambda: memd.receipt(pushed.id or "").ended, "the push has ended")
        outcome = memd.receipt(pushed.id)
    assert outcome.state == "stored"
    assert outcome.fact_ids == tuple(fact["id"] for fact in memd.document("ana")["facts"])


def test_small_talk_is_not_enqueued_and_says_why(memd: Memd, client: redis.Redis) -> None:
    """A push that filtering leaves nothing of is answered `skipped` with the reasons."""
    answer = memd.push(turns("ok", "Great."), thread_id="t", user_id="ana")
    assert (answer.status, answer.reason, answer.id) == ("skipped", "nothing_left", None)
    assert sum(answer.dropped.values()) == 2
    assert client.zcard(f"{verbs.P}:due") == 0


def test_a_bad_push_is_refused_with_a_code(memd: Memd, client: redis.Redis) -> None:
    """By API a bad push is an error that names code, field and limit; nothing is stored."""
    with pytest.raises(Rejected, match="E_USER_ID") as caught:
        memd.push(turns("I live in Porto."), thread_id="t", user_id="bad\x07id")
    assert "bad" not in str(caught.value)
    assert client.zcard(f"{verbs.P}:due") == 0


def test_the_next_prompt_gets_the_block(memd: Memd, settings: Settings) -> None:
    """After the conversation is stored, inject gives the block for the next prompt, within its budget."""
    assert memd.inject("ana") == ""
    with daemon(settings):
        memd.push(turns("I prefer short answers.", "Noted."), thread_id="t", user_id="ana", now=True)
        memd.flush(wait=True)
    block = memd.inject("ana")
    assert block.startswith("<memory>")
    assert "short answers" in block


def test_pushes_that_come_close_together_cost_one_model_call(configured: Configured, client: redis.Redis) -> None:
    """Three growing windows of one thread are merged while the key is not quiet: one request, each message once."""
    with ModelServer() as model:
        settings = model_settings(configured, model)
        library_of(client, settings)
        window = turns("I moved to Porto.", "Nice.", "I work as a nurse.", "Good.", "I like tea.", "Tea it is.")
        with Memd(settings) as app, daemon(settings):
            for end in (2, 4, 6):
                app.push(window[:end], thread_id="t", user_id="ana")
            assert ended(app) == {"stored": 3}
            assert sorted(facts(app, "ana")) == sorted(fact for fact in facts(app, "ana") if fact)
            assert len(facts(app, "ana")) == 3
        assert model.calls == 1


def test_what_was_taken_in_is_not_asked_again(configured: Configured, client: redis.Redis) -> None:
    """Pushing a stored conversation again ends as skipped, without a model call or a changed document."""
    with ModelServer() as model:
        settings = model_settings(configured, model)
        library_of(client, settings)
        with Memd(settings) as app, daemon(settings):
            app.push(turns("I moved to Porto.", "Nice."), thread_id="t", user_id="ana", now=True)
            app.flush(wait=True)
            before = app.document("ana")
            again = app.push(turns("I moved to Porto.", "Nice."), thread_id="t", user_id="ana", now=True)
            assert ended(app) == {"stored": 1, "skipped": 1}
            assert app.receipt(again.id or "").reason == "already_known"
            assert app.document("ana") == before
        assert model.calls == 1


def test_a_changed_fact_replaces_the_old_one(memd: Memd, settings: Settings) -> None:
    """When the user moves, the new place replaces the old one, which goes to the archive."""
    with daemon(settings):
        memd.push(turns("I live in Porto.", "Nice."), thread_id="a", user_id="ana", now=True)
        memd.flush(wait=True)
        memd.push(turns("I moved to Lisbon.", "Enjoy."), thread_id="b", user_id="ana", now=True)
        memd.flush(wait=True)
    document = memd.document("ana")
    assert [fact["content"] for fact in document["facts"] if "Porto" in fact["content"]] == []
    assert any("Lisbon" in fact["content"] for fact in document["facts"])
    assert any("Porto" in fact["content"] for fact in document["archive"])


def test_users_and_agents_have_memories_of_their_own(memd: Memd, settings: Settings) -> None:
    """One user's text never reaches another's memory, nor one agent's another agent's."""
    with daemon(settings, workers=2):
        memd.push(turns("I live in Porto.", "Nice."), thread_id="t", user_id="ana", now=True)
        memd.push(turns("I live in Leeds.", "Nice."), thread_id="t", user_id="bob", now=True)
        memd.push(turns("I like tea.", "Tea it is."), thread_id="t", user_id="ana", agent_name="chef", now=True)
        assert ended(memd) == {"stored": 3}
    assert "Leeds" not in str(memd.document("ana"))
    assert "Porto" not in str(memd.document("bob"))
    assert "Porto" not in str(memd.document("ana", agent_name="chef"))


def test_secrets_reach_neither_the_model_nor_the_memory(configured: Configured, client: redis.Redis) -> None:
    """What is cut out is counted by kind; a fact that would need it is refused; the ledger knows the message."""
    with ModelServer() as model:
        settings = model_settings(configured, model, redaction__pii=True)
        library_of(client, settings)
        said = "My password is Tr0ub4dor&3. I live in Porto. Write to ana@mail.example."
        before = [{"role": "user", "content": "我的信用卡号是4111111111111111", "id": "b0"}]
        with Memd(settings) as app, daemon(settings):
            app.push(before, thread_id="t", user_id="ana", now=True)
            app.flush(wait=True)
            app.push([*before, *turns(said)], thread_id="t", user_id="ana", now=True)
            app.flush(wait=True)
            status = app.status()
            document = app.document("ana")
        asked = "".join(str(request.body) for request in model.requests)
    assert "[redacted:password]. I live in Porto." in asked
    for secret in ("Tr0ub4dor", "4111111111111111", "ana@mail"):
        assert secret not in asked + str(document)
    assert status.redacted == {"card": 1, "password": 1, "email": 1}
    assert status.refused == {"secret": 2}
    assert len(open_store(settings).read_ledger(Bucket("ana"), document)["t"]) == 2


def test_a_sensitive_fact_waits_for_a_person(configured: Configured, client: redis.Redis) -> None:
    """The model is asked for the label and gives it; neither a prompt nor what was said shows the fact until then."""

    def labelled(request: dict[str, Any]) -> dict[str, Any]:
        facts = facts_from_messages(request)["newFacts"]
        return {"newFacts": [{**fact, "sensitive": "depression" in fact["content"]} for fact in facts]}

    with ModelServer(labelled) as model:
        settings = model_settings(configured, model, apply__sensitive="doubtful")
        library_of(client, settings)
        private, allergy = "I have had depression since 2024.", "I am allergic to hazelnuts."
        with Memd(settings) as app, daemon(settings):
            app.push(turns(private, "I see.", allergy), thread_id="t", user_id="ana", now=True)
            app.flush(wait=True)
            status = app.status()
            (fact,) = app.doubtful("ana")
            before = app.inject("ana", query="depression") + str(app.search("ana", "depression"))
            app.approve_fact("ana", fact["id"])
            after = app.inject("ana", query="depression")
        (asked,) = model.requests
    assert SENSITIVE in asked.body["system"][0]["text"]
    assert (fact["content"], fact["doubtfulWhy"]) == (private, "sensitive")
    assert "depression" not in before
    assert allergy in before
    assert private in after
    assert status.refused == {"sensitive": 1}


def test_a_reply_is_used_whatever_its_form(configured: Configured, client: redis.Redis) -> None:
    """A fenced reply with one bad fact: the good one is stored by one call, and what was mended and refused is told."""
    with ModelServer() as model:
        settings = model_settings(configured, model)
        library_of(client, settings)
        fact = {
            "content": "The user lives in Porto.",
            "category": "identity",
            "confidence": 0.9,
            "scope": "user",
            "durability": "durable",
            "authority": "descriptive",
            "evidence": [{"message": 0, "quote": "I live in Porto"}],
        }
        update = {"summaries": {}, "newFacts": [fact, {**fact, "content": "The user is a nurse.", "confidence": 1.2}]}
        model.text(f"Here it is:\n```json\n{orjson.dumps(update).decode()}\n```", times=None)
        with Memd(settings) as app, daemon(settings):
            receipt = app.push(turns("I live in Porto and work as a nurse."), thread_id="t", user_id="ana", now=True)
            app.flush(wait=True)
            assert facts(app, "ana") == ["The user lives in Porto."]
            outcome = app.receipt(receipt.id or "")
            status = app.status()
    assert (outcome.state, outcome.refused) == ("stored", {"malformed": 1})
    assert status.refused == {"malformed": 1}
    assert status.mended == {"fence": 1, "missing_list": 2, "prose": 1}
    assert status.usage["model_calls"] == 1


def test_an_async_app_pushes_in_one_round_trip(configured: Configured, client: redis.Redis) -> None:
    """AsyncMemd has the same verbs, awaited."""
    settings = configured()

    async def story() -> tuple[dict[str, int], str]:
        async with AsyncMemd(settings) as app:
            pushed = await app.push(turns("I live in Porto.", "Nice."), thread_id="t", user_id="ana", now=True)
            result = await app.flush(wait=True)
            assert (await app.receipt(pushed.id or "")).state == "stored"
            return result.counts, await app.inject("ana")

    with daemon(settings):
        counts, block = asyncio.run(story())
    assert counts == {"stored": 1}
    assert "Porto" in block


def test_disabled_answers_and_stores_nothing(configured: Configured, client: redis.Redis) -> None:
    """With `enabled: false` a push is answered `disabled` by the daemon's settings, and nothing is stored."""
    library_of(client, configured(enabled=False))
    with Memd(configured()) as app:
        assert app.push(turns("I live in Porto."), thread_id="t", user_id="ana").status == "disabled"
    assert client.zcard(f"{verbs.P}:due") == 0


def model_settings(configured: Configured, model: ModelServer, **changes: Any) -> Settings:
    return configured(
        extraction__extractor="anthropic",
        extraction__base_url=model.base_url,
        extraction__api_key="test-key",
        **changes,
    )


def library_of(client: redis.Redis, settings: Settings) -> None:
    from memd.inbox import library

    library.install(client, settings)
