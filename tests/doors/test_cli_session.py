"""Sessions from the shell: listed, shown, compacted, exported, removed."""

from __future__ import annotations

import json
import stat
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import redis
from support import Cli, code_blocks

from memd.client import Memd
from memd.config import Settings
from memd.context import Key
from memd.memory.store.json_store import open_store


@pytest.fixture
def talk(memd: Memd) -> None:
    """A saved session with a tool round, and a word that a terminal would obey."""
    session = memd.session("t", user_id="ana")
    session.user("I live in Porto.\x1b[31m How is the weather?")
    session.assistant("I look.")
    session.tool_use("c1", "weather", {"city": "Porto"})
    session.tool_result("c1", "18 degrees")
    session.assistant("18 degrees.")
    session.business_state = "answered"
    session.save()
    session.checkpoint(agent_state={"step": 2})


@pytest.mark.usefixtures("talk")
def test_a_session_is_listed_and_shown(memd: Memd, cli: Cli, client: redis.Redis) -> None:
    """Its turns with their tools, its size, its state; looking at it pushes and changes nothing."""
    before = open_store(memd.settings).sessions.load(Key("t", "ana")).content_hash
    assert cli("session", "list", "ana").stdout.splitlines()[1].startswith("t  ")
    [row] = json.loads(cli("session", "list", "ana", "--json").stdout)
    assert (row["thread_id"], row["revision"] > 0, row["bytes"] > 100) == ("t", True, True)
    shown = cli("session", "show", "ana", "t").stdout
    assert shown.splitlines()[:4] == [
        "user: I live in Porto.\\x1b[31m How is the weather?",
        "assistant: I look.",
        'assistant -> weather({"city":"Porto"})',
        "tool: 18 degrees",
    ]
    assert "4 turns, " in shown
    assert shown.endswith("0 turns not pushed yet\nstate: answered\n")
    assert json.loads(cli("session", "show", "ana", "t", "--json").stdout)["sessionId"] == "t"
    assert open_store(memd.settings).sessions.load(Key("t", "ana")).content_hash == before


@pytest.mark.usefixtures("talk")
def test_a_session_is_compacted(memd: Memd, cli: Cli) -> None:
    """A summary, here an outline, and the newest turn stay; an app that has it open is told."""
    done = cli("session", "compact", "ana", "t")
    assert done.stdout.startswith("4 turns, ")
    assert " -> " in done.stdout
    session = memd.session("t", user_id="ana")
    assert session.messages[0].kind == "summary"
    assert session.messages[-1].text == "18 degrees."


@pytest.mark.usefixtures("talk")
def test_a_session_is_exported_and_removed(memd: Memd, cli: Cli, settings: Settings) -> None:
    """A private file in AgentScope's form, with lines and checkpoints; a removal asks first."""
    file = settings.data_dir / "t.json"
    assert cli("session", "export", "ana", "t", "-o", str(file)).returncode == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    value = json.loads(file.read_text())
    assert {"sessionId", "components", "timestamp"} <= value.keys()
    assert value["components"]["memory"]["messages"][0]["role"] == "USER"
    assert [line["role"] for line in value["lines"]] == ["ASSISTANT", "TOOL"]
    assert value["checkpoints"][0]["state"]["agentState"] == {"step": 2}
    assert json.loads(cli("session", "export", "ana", "t").stdout) == value
    asked = cli("session", "rm", "ana", "t")
    assert (asked.returncode, "pass --yes" in asked.stderr) == (2, True)
    assert cli("session", "rm", "ana", "t", "--yes").stdout == "removed\n"
    assert memd.sessions("ana") == []


@pytest.mark.parametrize("command", ["show", "compact", "export", "rm"])
def test_a_session_that_is_not_there_is_named_so(cli: Cli, command: str, tmp_path: Path) -> None:
    """With the folder that was looked in, and a code for scripts; nothing is made."""
    done = cli("session", command, "ana", "t")
    assert (done.returncode, done.stderr.startswith("no such session in /")) == (1, True)
    assert cli("session", "list", "ana").stderr.startswith("no sessions of this user in /")


def test_the_page_runs(memd: Memd, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of docs/sessions.md, from top to bottom."""
    assert memd.settings.redis_url
    monkeypatch.setenv("MEMD_DATA_DIR", str(memd.settings.data_dir))
    monkeypatch.setenv("MEMD_REDIS_URL", memd.settings.redis_url.reveal())
    with redirect_stdout(StringIO()) as out:
        for code in code_blocks("docs/sessions.md", "python"):
            exec(compile(code, "docs/sessions.md", "exec"), {})  # noqa: S102  (our own page, in a folder of its own)
    printed = out.getvalue()
    assert "3 0\nwaiting for approval [{'id': 'call_1', 'name': 'order'}]\nuser I live in Porto" in printed
    assert "18 degrees, and rain.\n3\nYou are kind" in printed
    assert "State: done" in printed
    for line in "".join(code_blocks("docs/sessions.md", "sh")).splitlines():
        done = cli(*line.split()[1:])
        assert (done.returncode, done.stderr) == (0, "")
    assert [entry.thread_id for entry in memd.sessions("sessions")] == ["report", "order"]
