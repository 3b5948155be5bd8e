"""Data sets for the console: each fills the inbox and the data folder of one site with something its pages must show.

`full` and `chinese` are made by the real verbs and a daemon with a scripted model. Verbs refuse what `hostile` holds,
and are slow for `large`: their documents are written as files, which the store reads like its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import orjson
from msgspec.structs import replace

from memd.adapters.agent_memory import AgentMemory
from memd.client import Memd
from memd.config import Secret, Settings
from memd.context import Bucket
from memd.inbox import library, verbs
from memd.inbox.connection import connect, send
from memd.memory import suspended
from memd.memory.document import Document, Fact, empty_document
from memd.memory.store import paths
from memd.memory.store.json_store import open_store
from memd.push.times import iso
from memd.testing import ModelServer
from support import daemon, ended, execute, wait_for

USERS, KEYS, LETTERS = 10_000, 1_000, 300
"""Users that have a memory, keys that are pending, and dead letters of the large set."""

LONG = 100_000
"""Characters of the longest hostile fact."""


@dataclass(frozen=True)
class Said:
    """One message of a user, and the facts that the model makes of it: content and category. `replaces`: words of the
    fact that they replace. `project`: it is pushed for the set's project."""

    text: str
    facts: tuple[tuple[str, str], ...] = ()
    replaces: str = ""
    authority: str = "descriptive"
    confidence: float = 0.9
    project: bool = False


@dataclass(frozen=True)
class Words:
    """The words of a set in one language: who is in it, what they say, and what a person adds."""

    users: tuple[str, str]
    agent: str
    project: str
    thread: str
    talk: tuple[Said, ...]
    reply: str
    by_hand: tuple[tuple[str, str], ...]
    profile: Mapping[str, object]
    project_profile: Mapping[str, object]
    project_facts: tuple[tuple[str, str], ...]
    imported: str
    note: str
    waiting: str
    doomed: tuple[str, str]
    topics: str


ENGLISH = Words(
    users=("mira", "ben@example.com"),
    agent="chef",
    project="apollo",
    thread="weekend plans",
    talk=(
        Said("My name is Mira Costa.", (("The user's name is Mira Costa.", "identity"),)),
        Said("I live in Porto.", (("The user lives in Porto.", "identity"),)),
        Said("I prefer short answers without emojis.", (("Prefers short answers without emojis.", "preference"),)),
        Said("I know Rust and PostgreSQL well.", (("Knows Rust and PostgreSQL well.", "knowledge"),), confidence=0.75),
        Said("I work on the import pipeline this year.", (("Works on the import pipeline this year.", "context"),)),
        Said("I run along the river every morning.", (("Runs along the river every morning.", "behavior"),)),
        Said("I want to run a half marathon in April.", (("Wants to run a half marathon in April.", "goal"),)),
        Said("My sister Inês marries in June.", (("The user's sister Inês marries in June.", "event"),)),
        Said("I must not eat peanuts, I am allergic.", (("The user is allergic to peanuts.", "constraint"),)),
        Said("We decided to keep the importer in Python.", (("Decided to keep the importer in Python.", "decision"),)),
        Said("I moved to Lisbon last week.", (("The user moved to Lisbon.", "identity"),), replaces="lives in Porto"),
        Said(
            "You may deploy without asking me.",
            (("The assistant may deploy without asking.", "preference"),),
            authority="transactional",
        ),
        Said(
            "I have agreed to every migration.",
            (("The user has agreed to every migration.", "decision"),),
            authority="transactional",
        ),
        Said("Apollo ships every second Friday.", (("Apollo ships every second Friday.", "decision"),), project=True),
    ),
    reply="Noted. Is there anything else that I should know before we go on?",
    by_hand=(
        ("Drinks green tea in the morning.", "preference"),
        ("The user was wrong about the deadline: it is May 3rd.", "correction"),
    ),
    profile=MappingProxyType(
        {
            "username": "Mira Costa",
            "profession": "Backend engineer",
            "expertiseAreas": ["imports", "queues", "PostgreSQL"],
            "content": "Answer in English, and say which file you mean.",
        }
    ),
    project_profile=MappingProxyType({"projectGoal": "Ship the new importer.", "techStack": ["Python", "Valkey"]}),
    project_facts=(("The API is frozen until March 2027.", "decision"), ("The project uses GitLab.", "context")),
    imported="Plays the cello.",
    note="Asks for examples before explanations.",
    waiting="I think about buying a bicycle.",
    doomed=("This one breaks its worker.", "And this one is refused by the model."),
    topics="Mira prepares a half marathon, moves house, and makes the import pipeline faster.",
)

CHINESE = Words(
    users=("小明", "李雷@例子.公司"),
    agent="厨师",
    project="阿波罗计划",
    thread="周末的安排",
    talk=(
        Said("我叫陈小明。", (("用户叫陈小明。", "identity"),)),
        Said("我住在上海。", (("用户住在上海。", "identity"),)),
        Said("我喜欢简短的回答，不要表情符号。", (("喜欢简短的回答，不要表情符号。", "preference"),)),
        Said("我对操作系统和数据库很熟悉。", (("熟悉操作系统和数据库。", "knowledge"),), confidence=0.75),
        Said("我今年负责导入流水线。", (("今年负责导入流水线。", "context"),)),
        Said("我每天早上沿着河边跑步。", (("每天早上沿着河边跑步。", "behavior"),)),
        Said("我想四月份跑一次半程马拉松。", (("想四月份跑一次半程马拉松。", "goal"),)),
        Said("我妹妹六月份结婚。", (("用户的妹妹六月份结婚。", "event"),)),
        Said("我对花生过敏，不能吃。", (("用户对花生过敏。", "constraint"),)),
        Said("我们决定继续用现在的语言写导入程序。", (("决定继续用现在的语言写导入程序。", "decision"),)),
        Said("我上周搬到杭州了。", (("用户搬到了杭州。", "identity"),), replaces="住在上海"),
        Said("你可以不问我就部署。", (("助手可以不问就部署。", "preference"),), authority="transactional"),
        Said("阿波罗每两周的星期五发布。", (("阿波罗每两周的星期五发布。", "decision"),), project=True),
    ),
    reply="好的，记住了。在我们继续之前，还有什么需要我知道的吗？",
    by_hand=(("早上喝绿茶。", "preference"), ("用户说错了截止日期：是五月三日。", "correction")),
    profile=MappingProxyType(
        {
            "username": "陈小明",
            "profession": "后端工程师",
            "expertiseAreas": ["导入", "队列", "数据库"],
            "content": "请用中文回答。",
        }
    ),
    project_profile=MappingProxyType({"projectGoal": "发布新的导入程序。", "techStack": ["语言", "数据库"]}),
    project_facts=(("接口冻结到二〇二七年三月。", "decision"), ("项目使用内部的代码仓库。", "context")),
    imported="会拉大提琴。",
    note="喜欢先看例子再看解释。",
    waiting="我在考虑买一辆自行车。",
    doomed=("这一条让工作进程崩溃。", "这一条被模型拒绝。"),
    topics="小明在准备半程马拉松，正在搬家，并让导入流水线更快。",
)

_MESSAGE = re.compile(r'<m i="(\d+)" role="user"[^>]*?(?: project="(\d+)")?>([^<]*)</m>')


def empty(_: Settings) -> None:
    """Nothing at all."""


def full(settings: Settings) -> None:
    """Something in each place that a page shows, in English."""
    _told(settings, ENGLISH)


def chinese(settings: Settings) -> None:
    """The same in Chinese, with ids in Chinese."""
    _told(settings, CHINESE)


def _told(settings: Settings, words: Words) -> None:
    user, other = words.users
    with ModelServer(_model(words)) as model, Memd(settings) as memd:
        memd.project(words.project).make(user)
        memd.project(words.project).set_member(other, "viewer")
        asking = replace(
            settings,
            extraction=replace(
                settings.extraction, extractor="anthropic", base_url=model.base_url, api_key=Secret("test-key")
            ),
        )
        with connect(settings) as client, daemon(asking):
            for number, said in enumerate(words.talk):
                _say(memd, words, number, said)
                ended(memd)
            execute(client, "RPUSH", "memd:in", b'{"thread_id": 7')
            wait_for(lambda: memd.status().dead >= 1, "a raw push that is no JSON is dead")
        _learned_when_said(settings, Bucket(user))
        _by_hand(settings, memd, words)
        _session(memd, words)
        with connect(settings) as client:
            library.install(client, settings)
            _dead(memd, client, settings, words)
        for thread in (words.thread, f"{words.thread} 2"):
            memd.push([_turn(words.waiting, "later")], thread_id=thread, user_id=user)
        memd.push([_turn(words.waiting, "later")], thread_id=words.thread, user_id=other, agent_name=words.agent)


def _learned_when_said(settings: Settings, bucket: Bucket) -> None:
    """Let the memory have learned and replaced each fact on the day on which it was said."""
    document = open_store(settings).load(bucket).document
    said = {fact["id"]: fact["saidAt"] for fact in (*document["facts"], *document["archive"])}

    def dated(fact: Fact) -> Fact:
        at = said[fact["id"]]
        return {**fact, "createdAt": at} | ({"archivedAt": said[fact["replacedBy"]]} if "replacedBy" in fact else {})

    lists = {name: [dated(fact) for fact in document[name]] for name in ("facts", "archive")}
    write(settings, bucket, {**document, **lists})


def _say(memd: Memd, words: Words, number: int, said: Said) -> None:
    at = datetime.now(UTC) - timedelta(days=3 * (len(words.talk) - number))
    turns = [
        {**_turn(said.text, f"u{number}"), "created_at": iso(at)},
        {"role": "assistant", "content": words.reply, "id": f"a{number}", "created_at": iso(at + timedelta(seconds=9))},
    ]
    memd.push(
        turns,
        thread_id=f"{words.thread} {number // 5}",
        user_id=words.users[0],
        now=True,
        project_id=words.project if said.project else None,
    )


def _turn(text: str, name: str) -> dict[str, str]:
    return {"role": "user", "content": text, "id": name}


def _model(words: Words) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A model that finds in each message what the set's words say is in it."""
    by_text = {said.text: said for said in words.talk}

    def respond(request: dict[str, Any]) -> dict[str, Any]:
        prompt = str(request["messages"][-1]["content"])
        facts = []
        for number, mark, text in _MESSAGE.findall(prompt):
            said = by_text.get(text)
            for content, category in said.facts if said else ():
                assert said
                facts.append(_proposed(said, int(number), content, category, mark, prompt))
        return {"newFacts": facts, "summaries": {"topOfMind": words.topics} if facts else {}}

    return respond


def _proposed(said: Said, number: int, content: str, category: str, mark: str, prompt: str) -> dict[str, Any]:
    facts = prompt[: prompt.index("<messages>")].splitlines()
    former = [line.split()[0] for line in facts if said.replaces and said.replaces in line]
    return {
        "content": content,
        "category": category,
        "confidence": said.confidence,
        "scope": "project" if mark else "user",
        "durability": "durable",
        "authority": said.authority,
        "evidence": [{"message": number, "quote": said.text}],
        "replaces": former,
    }


def _by_hand(settings: Settings, memd: Memd, words: Words) -> None:
    """What people and agents add: facts, one of them edited and one removed, profiles, a note, an import."""
    user, other = words.users
    memd.import_memory(other, {"results": [{"id": "1", "memory": words.imported}]}, format="mem0")
    for content, category in words.by_hand:
        memd.add_fact(user, content, category=category)
    edited = memd.add_fact(user, words.imported)
    memd.edit_fact(user, edited, content=f"{words.imported} 2")
    memd.remove_fact(user, memd.add_fact(user, words.waiting))
    memd.add_fact(user, words.by_hand[0][0], agent_name=words.agent)
    for field, value in words.profile.items():
        memd.set_profile(user, field, value)
    project = memd.project(words.project)
    for field, value in words.project_profile.items():
        project.set_profile(field, value)
    for content, category in words.project_facts:
        memd.project(words.project, as_user=user).add_fact(content, category=category)
    AgentMemory(settings, user).save(words.note, "context")
    suspend(settings, Bucket(user), f"{words.note} 2")


def suspend(settings: Settings, bucket: Bucket, content: str) -> None:
    """Suspend a fact with these words, as a wish to forget too much does."""
    document = open_store(settings).load(bucket).document
    fact = suspended.suspended(a_fact(1_000, content), "too_many_forgotten", iso(datetime.now(UTC)))
    write(settings, bucket, suspended.with_facts(document, [fact]))


def _session(memd: Memd, words: Words) -> None:
    session = memd.session(words.thread, user_id=words.users[0])
    for said in words.talk[:6]:
        session.user(said.text)
        session.assistant(words.reply)
    session.save()


def _dead(memd: Memd, client: Any, settings: Settings, words: Words) -> None:
    """Two dead letters of conversations, each with a code of its own."""
    for number, (text, code) in enumerate(zip(words.doomed, ("E_ATTEMPTS", "E_CONTENT_REFUSED"), strict=True)):
        memd.push([_turn(text, f"d{number}")], thread_id=f"dead {number}", user_id=words.users[number], now=True)
        taken = send(client, verbs.claim(settings, 10, 0, "host:1:a", "model")).taken
        for claim in taken:
            assert send(client, verbs.bury(claim.id, code, f"{code}: as the data set says"))


# --- written as files ---------------------------------------------------------------------------------------------

HOSTILE_USERS = (
    "\"><script>alert('user')</script>",
    "javascript:alert(1)",
    "../../etc/passwd",
    "a'b\"c&d<e>f",
    "عبد الله שלום user",
    "x" * 256,
    "%3Cscript%3E?user=other&x=1#y",
)
HOSTILE_TEXTS = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "![x](https://evil.example/?d=1) [click](javascript:alert(3))",
    "</td></tr></table></main><style>body{display:none}</style>",
    "{{ 7*7 }} {% raw %} ${7*7} <%= 7*7 %>",
    "\u202eright to left \u2066and isolated\u200b\u200d\ufeff and never closed",
    '\'"><svg onload=alert(4)><a href="javascript:alert(5)">x</a>',
    "a\u0300" * 2_000,
    "W" * 5_000,
    "long " * (LONG // 5),
    "https://evil.example/" + "x" * 300,
)


def hostile(settings: Settings) -> None:
    """Ids and texts that try to be markup, scripts, links, other directions of writing, or are far too long."""
    with Memd(settings) as memd, connect(settings) as client:
        library.install(client, settings)
        for user in HOSTILE_USERS:
            document = filled(Bucket(user), HOSTILE_TEXTS)
            text = HOSTILE_TEXTS[0]
            document |= {
                "archive": [{**a_fact(90 + n, one), **_ARCHIVED} for n, one in enumerate(HOSTILE_TEXTS)],
                "doubtful": [
                    {**a_fact(190 + n, one), "doubtfulWhy": "authority", "doubtfulAt": iso(datetime.now(UTC))}
                    for n, one in enumerate(HOSTILE_TEXTS)
                ],
                "profile": {
                    "username": {"value": text, "updatedAt": iso(datetime.now(UTC)), "source": "manual", "factIds": []}
                },
            }
            document["user"]["topOfMind"] = {"summary": text, "updatedAt": iso(datetime.now(UTC))}
            write(settings, Bucket(user), document)
            write(settings, Bucket(user, text), filled(Bucket(user, text), HOSTILE_TEXTS[:2]))
            memd.push([_turn(text, text)], thread_id=text, user_id=user, agent_name=text)
        user = HOSTILE_USERS[0]
        memd.project(HOSTILE_TEXTS[0][:100]).make(user)
        session = memd.session(HOSTILE_TEXTS[0], user_id=user)
        for text in HOSTILE_TEXTS:
            session.user(text)
            session.assistant(text)
        session.save()
        turns = [_turn(one, f"'\"><b>{number}") for number, one in enumerate(HOSTILE_TEXTS)]
        memd.push(turns, thread_id=HOSTILE_TEXTS[1], user_id=user, now=True)
        for claim in send(client, verbs.claim(settings, 10, 0, "<b>host</b>:1:a", "<i>model</i>")).taken:
            assert send(client, verbs.bury(claim.id, "E_TEST", HOSTILE_TEXTS[0]))
        execute(client, "HINCRBY", f"{verbs.P}:stats", "used:<script>alert(6)</script>:calls", 1)


_ARCHIVED = MappingProxyType(
    {"archivedAt": "2026-11-01T00:00:00Z", "archiveReason": "replaced", "archiveNote": HOSTILE_TEXTS[0]}
)


def large(settings: Settings) -> None:
    """Ten thousand users and a thousand pending keys; one memory has as many facts as it may."""
    with Memd(settings) as memd, connect(settings) as client:
        library.install(client, settings)
        for number in range(USERS):
            bucket = Bucket(f"user-{number:05}")
            facts = settings.apply.max_facts if number == 0 else 3
            texts = [f"Fact {n} of user {number}, about the tea they drink." for n in range(facts)]
            write(settings, bucket, filled(bucket, texts))
        _many_dead(memd, client, settings)
        _long_session(memd)
        _big_project(settings, memd)
        for number in range(KEYS):
            turns = [_turn(f"Turn {n} of key {number}.", str(n)) for n in range(2)]
            memd.push(turns, thread_id=f"thread-{number}", user_id=f"user-{number // 2:05}")


def _many_dead(memd: Memd, client: Any, settings: Settings) -> None:
    for number in range(LETTERS):
        memd.push([_turn("I live in Porto.", "1")], thread_id=f"dead-{number}", user_id=f"user-{number:05}", now=True)
    while taken := send(client, verbs.claim(settings, 100, 0, "host:1:a", "model")).taken:
        for claim in taken:
            assert send(client, verbs.bury(claim.id, f"E_TEST_{claim.attempts}", "E_TEST: as the data set says"))


def _long_session(memd: Memd) -> None:
    session = memd.session("long", user_id="user-00000")
    for number in range(300):
        session.user(f"Turn {number}, about the tea that is drunk.")
        session.assistant("Noted.")
    session.save()


def _big_project(settings: Settings, memd: Memd) -> None:
    """A project with as many facts as a memory may have, and fifty members."""
    project = memd.project("big")
    project.make("user-00000")
    document = open_store(settings).load(project.bucket).document
    first = document["members"]["user-00000"]
    members = {f"user-{number:05}": {**first, "role": "viewer" if number else "owner"} for number in range(50)}
    facts = [a_fact(number, f"Fact {number} of the project.") for number in range(settings.apply.max_facts)]
    shared = [{**fact, "scope": "project", "scopeId": "big", "visibility": "members"} for fact in facts]
    write(settings, project.bucket, {**document, "members": members, "facts": shared})


def filled(bucket: Bucket, texts: Sequence[str]) -> Document:
    """A document with these facts."""
    document = empty_document(bucket)
    facts = [a_fact(number, text) for number, text in enumerate(texts)]
    return {**document, "facts": facts, "revision": 1, "lastUpdated": iso(datetime.now(UTC))}


CATEGORIES = ("preference", "knowledge", "context", "behavior", "goal", "event", "constraint", "decision", "identity")


def a_fact(number: int, text: str) -> Fact:
    """A fact that a model drew from a conversation, the older the higher its number."""
    at = iso(datetime.now(UTC) - timedelta(hours=number))
    return {
        "id": f"fact_{number:08x}",
        "content": text,
        "category": CATEGORIES[number % len(CATEGORIES)],
        "confidence": 0.7 + number % 4 / 10,
        "createdAt": at,
        "source": text[:150],
        "evidence": [{"thread": text[:150], "message": text[:150], "quote": text}],
        "saidAt": at,
        "backstory": text[:300],
    }


def write(settings: Settings, bucket: Bucket, document: Document) -> None:
    """Write a document as the store would, without waiting for the disk."""
    folder = paths.folder(settings.data_dir, bucket, shared=False)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / paths.FILE
    file.write_bytes(orjson.dumps(document))
    file.chmod(0o600)


SETS: Mapping[str, Callable[[Settings], None]] = MappingProxyType(
    {"empty": empty, "full": full, "chinese": chinese, "hostile": hostile, "large": large}
)


def check(settings: Settings, user: str) -> int:
    """The facts of a user as the store reads them, so that no set tests pages with documents that are set aside."""
    document = open_store(settings).load(Bucket(user)).document
    return len(document["facts"])
