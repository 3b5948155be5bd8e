"""AgentScope's long-term memory and Anthropic's memory tool over memd."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import anthropic
import pytest
import redis
from anthropic.tools import ToolError
from support import daemon
from support.inbox_view import look, messages

from memd.adapters.anthropic_memory import AsyncMemdMemoryTool, MemdMemoryTool
from memd.adapters.longterm import RETRIEVED, Answer, LongTermMemory
from memd.client import Memd
from memd.config import Settings
from memd.context import Key
from memd.errors import ConfigError


@dataclass
class Msg:
    """A message with the fields of AgentScope's own."""

    name: str
    content: Any
    role: str
    id: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


def memory(memd: Memd, **options: Any) -> LongTermMemory:
    return LongTermMemory(memd, user_id="ana", thread_id="t", **options)


def pending(client: redis.Redis) -> list[str]:
    """What waits in the inbox for the thread."""
    fields = look(client).pending.get(Key("t", "ana").hash, {})
    return [message.content for message in messages(fields)]


def told(answer: Any) -> str:
    text = answer.content[0]["text"]
    assert isinstance(text, str)
    return text


# AgentScope


def test_what_is_recorded_can_be_retrieved(memd: Memd, settings: Settings) -> None:
    """Static: the framework records a conversation, and later gets the block for its prompt, as data."""
    book = memory(memd, mode="static")
    said = [Msg("ana", "I live in Porto.", "user", "1"), Msg("bot", "A fine city.", "assistant", "2"), None]
    asyncio.run(book.record(said))
    with daemon(settings):
        memd.flush(user_id="ana", wait=True)
    block = asyncio.run(book.retrieve(Msg("ana", "Where do I live?", "user", "3")))
    assert block.startswith("<memory>")
    assert "Porto" in block.partition("not instructions")[2]
    assert book.tools() == []


def test_what_was_retrieved_is_not_recorded_as_the_users_words(memd: Memd, client: redis.Redis) -> None:
    """A ReActAgent keeps retrieved memory as a user's message and records it with the rest: it is passed over.

    The same messages come again after each reply; each counts once. Tools' turns stay out.
    """
    book = memory(memd)
    kept = Msg(RETRIEVED, "<long_term_memory>The user lives in Porto.</long_term_memory>", "user", "m")
    asked = Msg("ana", [{"type": "text", "text": "I like tea."}, {"type": "image", "source": {}}], "user", "1")
    calls = Msg("bot", [{"type": "tool_use", "id": "c", "name": "search", "input": {}}], "assistant", "2")
    result = Msg("system", [{"type": "tool_result", "id": "c", "output": "x"}], "system", "3")
    reply = Msg("bot", [{"type": "text", "text": "记住了。"}], "assistant", "4")
    for _ in range(2):
        asyncio.run(book.record([asked, asked, kept, calls, result, reply, reply]))
    assert pending(client) == ["I like tea.", "记住了。"]


def test_the_agents_tools_save_and_find(memd: Memd) -> None:
    """Agent: the model saves notes and finds them by keywords, in any language; each refusal is told by its code."""
    book = memory(memd, mode="agent_control")
    assert [tool.__name__ for tool in book.tools()] == ["record_to_memory", "retrieve_from_memory"]
    said = told(asyncio.run(book.record_to_memory("it matters", ["The user likes green tea.", "用户住在杭州。", "x"])))
    assert said.splitlines()[0].startswith("Kept as fact_")
    assert said.splitlines()[2].startswith("Not kept: E_NOTE_TOO_SHORT")
    assert {fact["source"] for fact in memd.document("ana")["facts"]} == {"agent"}
    found = told(asyncio.run(book.retrieve_from_memory(["green tea", "杭州", "tea"])))
    assert found.count("green tea") == 1
    assert "杭州" in found
    assert "not instructions" in found
    assert "E_LIMIT" in told(asyncio.run(book.retrieve_from_memory(["tea"], limit=0)))


def test_a_mode_does_only_what_it_says(memd: Memd, client: redis.Redis) -> None:
    """In mode agent nothing is pushed or injected behind the model's back; an unknown mode is an error."""
    book = memory(memd, mode="agent")
    asyncio.run(book.record([Msg("ana", "I live in Porto.", "user", "1")]))
    asyncio.run(book.record_to_memory("", ["The user likes tea."]))
    assert pending(client) == []
    assert asyncio.run(book.retrieve(Msg("ana", "tea", "user"))) == ""
    assert len(memory(memd, mode="both").tools()) == 2
    with pytest.raises(ConfigError):
        memory(memd, mode="dynamic")


def test_it_plugs_in_by_inheritance_too(memd: Memd) -> None:
    """A class of both bases, with the framework's own answer, as AgentScope's Toolkit wants it."""

    class Base:
        def __init__(self) -> None:
            self.state = "set up"

        async def record(self, msgs: Any) -> None:
            raise NotImplementedError

    class Mine(LongTermMemory, Base):
        pass

    mine = Mine(memd, user_id="ana", thread_id="t", response=lambda content: Answer(content, {"own": True}))
    assert mine.state == "set up"
    assert asyncio.run(mine.record([])) is None
    assert asyncio.run(mine.retrieve_from_memory([])).metadata == {"own": True}


# Anthropic's memory tool


Do = Callable[..., str]


@pytest.fixture
def do(memd: Memd) -> Do:
    """Runs one command as the tool runner does, and answers its text or the error's."""
    tool = MemdMemoryTool(memd, user_id="ana")

    def run(command: str, **fields: Any) -> str:
        try:
            answer = tool.call({"command": command, **fields})
        except ToolError as error:
            return f"error: {error}"
        assert isinstance(answer, str)
        return answer

    return run


FACTS = "/memories/facts.md"


def lines(do: Do, path: str = FACTS) -> list[str]:
    """The lines of a file without their numbers."""
    text = do("view", path=path)
    return [] if text.startswith("error") else [line.partition("\t")[2] for line in text.splitlines()[2:]]


def test_an_empty_memory_is_an_empty_folder(do: Do) -> None:
    """Nothing is there, and what is not there is said as the tool's description has it."""
    header = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
    assert do("view", path="/memories").splitlines()[1:] == [header, "0B\t/memories"]
    missing = f"error: The path {FACTS} does not exist. Please provide a valid path."
    assert do("view", path=FACTS) == missing
    assert do("str_replace", path=FACTS, old_str="a", new_str="b") == missing
    assert do("delete", path=FACTS) == f"error: The path {FACTS} does not exist"


def test_lines_become_notes_and_files_summaries(do: Do, memd: Memd) -> None:
    """A file of facts is created, each line a note; a summary is a file of its own; both are listed."""
    created = do("create", path=FACTS, file_text="- The user likes tea.\n* [goal] 用户想学葡萄牙语。\n")
    assert created == f"File created successfully at: {FACTS}"
    do("create", path="/memories/work_context.md", file_text="A nurse\nin Porto.\n")
    facts = memd.document("ana")["facts"]
    assert [(fact["content"], fact["category"], fact["source"]) for fact in facts] == [
        ("The user likes tea.", "context", "agent"),
        ("用户想学葡萄牙语。", "goal", "agent"),
    ]
    assert memd.document("ana")["user"]["workContext"]["summary"] == "A nurse in Porto."
    assert [line.split("/")[-1] for line in do("view", path="/memories/").splitlines()[3:]] == [
        "facts.md", "work_context.md",
    ]  # fmt: skip
    assert do("create", path=FACTS, file_text="More.") == f"error: File {FACTS} already exists"
    seen = do("view", path=FACTS, view_range=[2, -1])
    assert "not instructions" in seen.splitlines()[0]
    assert seen.splitlines()[1:] == [
        f"Here's the content of {FACTS} with line numbers:", f"     2\t- [{facts[1]['id']} | goal] 用户想学葡萄牙语。",
    ]  # fmt: skip


def test_a_line_that_changes_changes_its_fact(do: Do, memd: Memd) -> None:
    """Replaced text is an update of the same fact, with what it was in the archive; the answer shows the change."""
    do("create", path=FACTS, file_text="The user lives in Porto.\nThe user likes tea.")
    fact_id = memd.document("ana")["facts"][0]["id"]
    answer = do("str_replace", path=FACTS, old_str="Porto", new_str="Lisbon")
    assert answer.splitlines() == [
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):",
        f"     1\t- [{fact_id} | context] The user lives in Lisbon.",
        f"     2\t{lines(do)[1]}",
    ]
    document = memd.document("ana")
    assert (document["facts"][0]["id"], document["archive"][0]["content"]) == (fact_id, "The user lives in Porto.")
    do("str_replace", path=FACTS, old_str="| context] The user likes", new_str="| preference] The user likes")
    assert memd.document("ana")["facts"][1]["category"] == "preference"


def test_lines_come_and_go(do: Do, memd: Memd) -> None:
    """Inserted lines are notes; a line that is taken out retires its fact; a file that is deleted, all of them."""
    do("create", path=FACTS, file_text="The user lives in Porto.\nThe user likes tea.")
    assert do("insert", path=FACTS, insert_line=1, insert_text="The user plays chess.\n") == (
        f"The file {FACTS} has been edited."
    )
    assert [line.partition("] ")[2] for line in lines(do)] == [
        "The user lives in Porto.", "The user likes tea.", "The user plays chess.",
    ]  # fmt: skip
    do("str_replace", path=FACTS, old_str=lines(do)[1], new_str="")
    assert [fact["content"] for fact in memd.document("ana")["archive"]] == ["The user likes tea."]
    assert do("delete", path=FACTS) == f"Successfully deleted {FACTS}"
    assert memd.document("ana")["facts"] == []
    assert len(memd.document("ana")["archive"]) == 3


def test_a_summary_moves_and_goes(do: Do, memd: Memd) -> None:
    """Renaming moves a summary's text; facts have one place only."""
    old, new = "/memories/recent_months.md", "/memories/earlier_context.md"
    do("create", path=old, file_text="Moved to Porto.")
    assert do("rename", old_path=old, new_path=new) == f"Successfully renamed {old} to {new}"
    assert memd.document("ana")["history"]["earlierContext"]["summary"] == "Moved to Porto."
    do("create", path=old, file_text="Learns Portuguese.")
    assert do("rename", old_path=old, new_path=new) == f"error: The destination {new} already exists"
    assert "cannot be renamed" in do("rename", old_path=old, new_path=FACTS)
    assert do("delete", path=old) == f"Successfully deleted {old}"
    assert do("rename", old_path=old, new_path=new) == f"error: The path {old} does not exist"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/etc/passwd", "Path must start with /memories"),
        ("memories/facts.md", "Path must start with /memories"),
        ("/memoriesx/facts.md", "Path must start with /memories"),
        ("/memories/../../etc/passwd", "would escape /memories"),
        ("/memories/a/../facts.md", "would escape /memories"),
        ("/memories/..\\..\\etc", "would escape /memories"),
        ("/memories/%2e%2e/facts.md", "cannot be used: /memories has only the files facts.md"),
        ("/memories/diary.md", "cannot be used: /memories has only the files facts.md"),
        ("/memories//facts.md", "cannot be used"),
        ("/memories/facts.md\x00", "cannot be used"),
        ("/memories", "cannot be used"),
        (None, "The parameter `path` must be text."),
        (7, "The parameter `path` must be text."),
    ],
)
def test_nothing_leaves_the_folder(do: Do, memd: Memd, path: Any, problem: str) -> None:
    """A path is one of seven names or an error that says which there are; no other file is ever touched."""
    before = sorted(memd.settings.data_dir.rglob("*"))
    assert problem in do("create", path=path, file_text="The user likes tea.")
    assert do("view", path=path).startswith("error") or path == "/memories"
    assert do("str_replace", path=path, old_str="a", new_str="b").startswith("error")
    assert do("delete", path=path).startswith("error")
    assert do("rename", old_path=path, new_path="/memories/top_of_mind.md").startswith("error")
    assert sorted(memd.settings.data_dir.rglob("*")) == before


def test_an_edit_that_cannot_be_mapped_changes_nothing(do: Do, memd: Memd) -> None:
    """Headings, foreign ids, a fact named twice, secrets: a clear error, and no line of it is kept."""
    do("create", path=FACTS, file_text="The user lives in Porto.\nThe user likes tea.\nThe user likes tea and cake.")
    before = memd.document("ana")
    first, second = lines(do)[:2]
    foreign = first.replace("fact_", "fact_f")
    key = "sk-ant-api03-" + "Ab3" * 31 + "AA"
    for old, new, problem in [
        (first, f"# Facts\n{first}", "E_LINE: line 1 is not a fact"),
        (first, foreign, "E_LINE_ID"),
        (first, second, "E_LINE_TWICE"),
        (first, f"{first}\nThe user plays chess.\nThe key is {key}.", "E_NOTE_SECRET"),
        (first, f"{first}\n- [orders] The user plays chess.", "E_CATEGORY"),
        ("coffee", "tea", "did not appear verbatim in /memories/facts.md."),
        ("likes tea", "hates tea", "Multiple occurrences of old_str `likes tea` in lines: 2, 3."),
        ("", "x", "did not appear verbatim"),
    ]:
        assert problem in do("str_replace", path=FACTS, old_str=old, new_str=new), new
    assert "within the range [0, 3]" in do("insert", path=FACTS, insert_line=4, insert_text="x")
    assert "whole number" in do("insert", path=FACTS, insert_line="soon", insert_text="x")
    assert "view_range" in do("view", path=FACTS, view_range=[1])
    assert memd.document("ana") == before


def test_what_a_person_wrote_cannot_be_edited_away(do: Do, memd: Memd) -> None:
    """Neither by changing its line nor with the file; whom a fact is about cannot be changed either."""
    memd.add_fact("ana", "The user likes tea.")
    assert "E_FACT_BY_HAND" in do("str_replace", path=FACTS, old_str="likes", new_str="hates")
    assert "E_FACT_BY_HAND" in do("delete", path=FACTS)
    assert do("insert", path=FACTS, insert_line=0, insert_text="The user plays chess.").endswith("has been edited.")
    assert [fact["source"] for fact in memd.document("ana")["facts"]] == ["manual", "agent"]


def test_whom_a_fact_is_about_stands_in_its_line_and_stays(do: Do, memd: Memd) -> None:
    """A fact about somebody else says so; its sentence can be changed, the person cannot."""
    import_facts(memd, {"content": "Plays chess.", "subject": {"person": "Rui", "relationship": "brother"}})
    assert lines(do)[0].endswith("] about Rui: Plays chess.")
    assert "E_LINE_ASIDE" in do("str_replace", path=FACTS, old_str="about Rui: Plays", new_str="Plays")
    do("str_replace", path=FACTS, old_str="Plays", new_str="Teaches")
    fact = memd.document("ana")["facts"][0]
    assert (fact["content"], fact["subject"]["person"]) == ("Teaches chess.", "Rui")


def import_facts(memd: Memd, *facts: dict[str, Any]) -> None:
    """Write a document by hand, as DeerFlow's would be."""
    folder = memd.settings.data_dir / "users" / "ana"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "memory.json").write_text(json.dumps({"version": "1.0", "facts": [*facts]}))


class Playing(BaseHTTPRequestHandler):
    """The Messages API as a model that gives one memory command after the other, and keeps what it was told."""

    commands: list[dict[str, Any]]
    results: list[Any]
    wbufsize = -1

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = asked["messages"][-1]["content"]
        if isinstance(last, list) and last[0]["type"] == "tool_result":
            self.results.append(last[0])
        command = self.commands.pop(0) if self.commands else None
        content: list[dict[str, Any]] = [{"type": "text", "text": "Done."}]
        if command:
            content = [{"type": "tool_use", "id": f"tu_{len(self.commands)}", "name": "memory", "input": command}]
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": content}
        body = json.dumps({**answer, "stop_reason": "tool_use" if command else "end_turn"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def playing() -> Iterator[tuple[str, type[Playing]]]:
    """An endpoint, and the class that holds its script."""
    kind = type("Script", (Playing,), {"commands": [], "results": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", kind
    server.shutdown()
    server.server_close()


SCRIPT = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": FACTS, "file_text": "The user likes tea."},
    {"command": "create", "path": "/memories/diary.md", "file_text": "Dear diary."},
]


def options(tool: Any) -> dict[str, Any]:
    asked = [{"role": "user", "content": "I like tea."}]
    return {"model": "claude-haiku-5-5", "max_tokens": 64, "messages": asked, "tools": [tool], "thread": False}


def test_the_sdks_tool_runner_drives_it(memd: Memd, playing: tuple[str, type[Playing]]) -> None:
    """The SDK's own runner calls the tool, hands its answers to the model, and its errors as errors."""
    url, kind = playing
    kind.commands[:] = SCRIPT
    with anthropic.Anthropic(base_url=url, api_key="test") as client:
        client.beta.messages.tool_runner(**options(MemdMemoryTool(memd, user_id="ana"))).until_done()
    assert [bool(result.get("is_error")) for result in kind.results] == [False, False, True]
    assert "cannot be used" in str(kind.results[2]["content"])
    assert [fact["content"] for fact in memd.document("ana")["facts"]] == ["The user likes tea."]


def test_the_async_tool_runner_drives_it_too(memd: Memd, playing: tuple[str, type[Playing]]) -> None:
    """The same with the async tool; here every command, as each is a method of its own."""
    url, kind = playing
    note, work, top = FACTS, "/memories/work_context.md", "/memories/top_of_mind.md"
    kind.commands[:] = [
        *SCRIPT[:2],
        {"command": "str_replace", "path": note, "old_str": "tea", "new_str": "coffee"},
        {"command": "insert", "path": note, "insert_line": 0, "insert_text": "The user plays chess."},
        {"command": "create", "path": work, "file_text": "A nurse."},
        {"command": "rename", "old_path": work, "new_path": top},
        {"command": "delete", "path": top},
    ]

    async def run() -> None:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="test") as client:
            tool = AsyncMemdMemoryTool(memd, user_id="ana")
            await client.beta.messages.tool_runner(**options(tool)).until_done()

    asyncio.run(run())
    assert [bool(result.get("is_error")) for result in kind.results] == [False] * 7
    document = memd.document("ana")
    assert [fact["content"] for fact in document["facts"]] == ["The user likes coffee.", "The user plays chess."]
    assert document["user"]["topOfMind"]["summary"] == ""
