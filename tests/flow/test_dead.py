"""Dead letters: kept with their reason, looked at, tried again in their old places, or thrown away."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial

import orjson
import pytest
import redis
from support import Cli, daemon, execute, next_millisecond, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.errors import Rejected
from memd.inbox import verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import send
from memd.inbox.dead import LetterFilter
from memd.inbox.raw_door import RawDoor
from memd.inbox.verbs import P

pytestmark = pytest.mark.timing


def turns(*texts: str, start: int = 0) -> list[dict[str, str]]:
    return [{"role": "user", "content": text, "id": f"m{start + n}"} for n, text in enumerate(texts)]


def claim(client: redis.Redis, settings: Settings) -> Sequence[Claim]:
    return send(client, verbs.claim(settings, 10, 0, "w", "model")).taken


def kill(client: redis.Redis, settings: Settings, code: str = "E_TEST") -> str:
    """Bury all that is due; the id of the last letter."""
    taken = claim(client, settings)
    for one in taken:
        assert send(client, verbs.bury(one.id, code, f"{code}: for a test"))
    return taken[-1].id


def texts(found: Claim) -> list[str]:
    return [message.content for message in found.messages]


def test_a_letter_says_what_died_and_why(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Code, sentence, time, ids and messages are there to be read."""
    memd.push(turns("one", "two"), thread_id="t", user_id="ana", agent_name="chef", now=True)
    letter_id = kill(client, settings)
    found = memd.dead_letter(letter_id)
    assert found is not None
    assert (found.letter.code, found.letter.error) == ("E_TEST", "E_TEST: for a test")
    assert (found.letter.user_id, found.letter.agent_name, found.letter.thread_id) == ("ana", "chef", "t")
    assert [message["content"] for message in found.messages] == ["one", "two"]
    assert memd.dead_letter("nothing") is None


def test_letters_are_read_a_page_at_a_time(
    memd: Memd, client: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest first, in full pages while there are any, with the count of each code; of one code or user only."""
    for number, user in enumerate(("ana", "ben", "ana", "cai", "ana")):
        memd.push(turns("one"), thread_id=f"t{number}", user_id=user, now=True)
        kill(client, settings, f"E_{user.upper()}")
        next_millisecond(client)  # deaths are told apart by it
    first = memd.dead_page(limit=2)
    assert [letter.thread_id for letter in first.letters] == ["t4", "t3"]
    assert (first.total, first.codes, first.looked_at) == (5, {"E_ANA": 3, "E_CAI": 1, "E_BEN": 1}, 5)
    second = memd.dead_page(limit=2, after=first.next)
    third = memd.dead_page(limit=2, after=second.next)
    assert [letter.thread_id for page in (second, third) for letter in page.letters] == ["t2", "t1", "t0"]
    assert third.next == ""
    mine = memd.dead_page(LetterFilter(code="E_ANA"), limit=2)
    assert [letter.thread_id for letter in mine.letters] == ["t4", "t2"]
    assert [one.thread_id for one in memd.dead_page(LetterFilter(user_id="cai"), limit=2).letters] == ["t3"]
    for wrong in ({"limit": 0}, {"limit": 501}, {"after": "x"}, {"after": "١"}):
        with pytest.raises(Rejected):
            memd.dead_page(**wrong)
    monkeypatch.setattr("memd.inbox.dead.LOOKED_AT", 2)
    short = memd.dead_page(LetterFilter(user_id="cai"), limit=2)
    assert ([one.thread_id for one in short.letters], short.next, short.looked_at) == (["t3"], "2", 2)
    assert memd.dead_page(LetterFilter(user_id="ben"), limit=2).letters == ()


def test_a_retried_letter_takes_its_old_place(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """What died first comes first again, before what was pushed since."""
    memd.push(turns("one", "two"), thread_id="t", user_id="ana", now=True)
    kill(client, settings)
    memd.push(turns("three", start=2), thread_id="t", user_id="ana", now=True)
    assert memd.retry(memd.dead()) == 1
    [again] = claim(client, settings)
    assert texts(again) == ["one", "two", "three"]
    assert (again.attempts, again.suspect, again.first, again.last) == (0, False, 1, 2)
    assert memd.dead() == []


def test_a_letter_retried_alone_is_a_key_again(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """With nothing else pending the letter becomes the pending key, due now, of its user."""
    memd.push(turns("one"), thread_id="t", user_id="ana", now=True)
    kill(client, settings)
    memd.retry(memd.dead())
    status = memd.status()
    assert (status.pending, status.due, status.dead, status.dead_so_far) == (1, 1, 0, 0)
    assert [texts(found) for found in claim(client, settings)] == [["one"]]


def test_a_receipt_follows_the_retry(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """dead, then pending, then stored: the old end does not stick to it."""
    pushed = memd.push(turns("I live in Porto."), thread_id="t", user_id="ana", now=True).id or ""
    kill(client, settings)
    assert memd.receipt(pushed).state == "dead"
    memd.retry(memd.dead())
    assert memd.receipt(pushed).state == "pending"
    with daemon(settings):
        wait_for(lambda: memd.receipt(pushed).ended, "it has ended again")
    outcome = memd.receipt(pushed)
    assert (outcome.state, outcome.counts) == ("stored", {"stored": 1})


def test_what_died_is_known_until_it_is_retried(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """The same message pushed again is skipped as already dead; after a retry it merges."""
    memd.push(turns("one"), thread_id="t", user_id="ana", now=True)
    kill(client, settings)
    assert memd.push(turns("one"), thread_id="t", user_id="ana").reason == "already_dead"
    memd.retry(memd.dead())
    assert memd.push(turns("one"), thread_id="t", user_id="ana").status == "merged"


def test_what_was_dropped_is_gone_and_stays_known_for_a_while(
    memd: Memd, client: redis.Redis, settings: Settings
) -> None:
    """A dropped letter leaves nothing but the mark, which has a time to live, as its receipt has."""
    pushed = memd.push(turns("one"), thread_id="t", user_id="ana", now=True).id or ""
    kill(client, settings)
    assert memd.drop(memd.dead()) == 1
    assert memd.push(turns("one"), thread_id="t", user_id="ana").reason == "already_dead"
    assert memd.receipt(pushed).state == "dead"
    key = pushed.split(".")[0]
    assert 0 < execute(client, "PTTL", f"{P}:died:{key}") <= settings.inbox.receipt_ttl_s * 1000
    assert client.zscore(f"{P}:ended", key) is not None
    assert memd.drop(memd.dead()) == 0


def test_an_outcome_with_letters_is_not_swept(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """While a letter is kept, its receipt can be asked for; when the last one is gone, its time begins."""
    memd.push(turns("one"), thread_id="t", user_id="ana", now=True)
    kill(client, settings)
    for member in execute(client, "ZRANGE", f"{P}:ended", 0, -1):
        client.zadd(f"{P}:ended", {member: 1})
    assert send(client, verbs.sweep()) == 0
    memd.drop(memd.dead())
    for member in execute(client, "ZRANGE", f"{P}:ended", 0, -1):
        client.zadd(f"{P}:ended", {member: 1})
    assert send(client, verbs.sweep()) == 1


def test_letters_are_chosen_by_id_code_and_user(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Any one of them, or code and user together."""
    for number, (user, code) in enumerate([("ana", "E_A"), ("ana", "E_B"), ("bob", "E_A")]):
        memd.push(turns("one"), thread_id=f"t{number}", user_id=user, now=True)
        kill(client, settings, code)
    assert len(memd.dead()) == 3
    assert len(memd.dead(LetterFilter(code="E_A"))) == 2
    assert len(memd.dead(LetterFilter(user_id="ana"))) == 2
    [letter] = memd.dead(LetterFilter(code="E_A", user_id="ana"))
    assert memd.dead(LetterFilter(ids=(letter.id,))) == [letter]


def test_a_raw_push_that_was_refused_is_tried_again_first(
    memd: Memd, client: redis.Redis, settings: Settings, configured: Callable[..., Settings]
) -> None:
    """Its limits raised, a refused raw push is taken in like any other."""
    small = configured(client__max_read_bytes=1_024, client__max_push_bytes=1_024)
    said = [{**turn, "note": "x" * 600} for turn in turns("I live in Porto.", "I like tea.")]
    push = {"thread_id": "t", "user_id": "ana", "messages": said, "now": True}
    with daemon(small):
        client.rpush("memd:in", orjson.dumps(push))
        wait_for(memd.dead, "it was refused")
        assert memd.dead()[0].code == "E_PUSH_SIZE"
    with daemon(settings):
        assert memd.retry(memd.dead()) == 1
        wait_for(lambda: len(memd.document("ana")["facts"]) == 2, "it is remembered")
    assert memd.dead() == []


def test_a_raw_push_that_no_setting_makes_good_stays_dead(
    memd: Memd, client: redis.Redis, settings: Settings, cli: Cli
) -> None:
    """A retry leaves it there and says the code; one that can be read goes back."""
    for raw in (b"{not json", b'{"thread_id": "t", "user_id": "ana", "messages": 1}'):
        client.rpush("memd:in", raw)
    RawDoor(settings, client).take_in()
    good = orjson.dumps({"thread_id": "t", "user_id": "ana", "messages": turns("I like tea.")})
    client.rpush("memd:in", good)
    send(client, verbs.take_dead(good, "memd:in", Rejected("E_PUSH_SIZE", "a smaller limit, once")))
    retried = cli("dead", "retry", "--all", "--yes")
    assert "1 letter is pending again\n" in retried.stdout
    assert "still dead, as the content would be refused again: 1 E_JSON, 1 E_MESSAGES_TYPE" in retried.stderr
    again = json.loads(cli("dead", "retry", "--all", "--yes", "--json").stdout)
    assert again == {"retry": 0, "stay": {"E_JSON": 1, "E_MESSAGES_TYPE": 1}}
    assert client.llen("memd:in") == 1


def test_a_thousand_letters_move_in_pages(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """All of them, none twice, whatever the pages."""
    for number in range(1200):
        memd.push(turns("one"), thread_id="t", user_id=f"user-{number}", now=True)
    while taken := claim(client, settings):
        for one in taken:
            send(client, verbs.bury(one.id, "E_TEST", "E_TEST: for a test"))
    assert len({letter.id for letter in memd.dead()}) == 1200
    assert memd.retry(memd.dead()) == 1200
    assert (memd.status().due, memd.status().dead) == (1200, 0)


def test_the_command_line(memd: Memd, client: redis.Redis, settings: Settings, cli: Cli) -> None:
    """list, show, retry and drop, for people and for scripts."""
    run = partial(cli, "dead")

    assert run("list").stdout == "no dead letters\n"
    memd.push(turns("say \x1b[31mred", "two"), thread_id="t", user_id="ana", now=True)
    memd.push(turns("three"), thread_id="t", user_id="bob", now=True)
    kill(client, settings)
    listed = run("list").stdout
    assert "2 dead: 2 E_TEST" in listed
    assert "user ana" in listed
    [letter] = json.loads(run("list", "--user", "ana", "--json").stdout)
    shown = run("show", letter["id"]).stdout
    assert "user: two" in shown
    assert "\x1b" not in shown
    assert json.loads(run("show", letter["id"], "--json").stdout)["messages"][1]["content"] == "two"
    refused = run("retry", letter["id"])
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert run("retry").returncode == 2
    assert run("show", "nothing").returncode == 2
    assert run("retry", letter["id"], "--yes").stdout == "1 letter is pending again\n"
    assert json.loads(run("drop", "--all", "--yes", "--json").stdout) == {"drop": 1}
    assert (memd.status().dead, memd.status().pending) == (0, 1)
