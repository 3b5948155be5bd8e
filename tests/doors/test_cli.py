"""The command line: what each command prints, and what its exit code means."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from support import ENDS_S, Cli, MakeSettings, daemon, environment, first_due, wait_for

import memd.cli
from memd.cli.app import COMMANDS, load
from memd.client import Memd
from memd.config import Settings
from memd.inbox import library, verbs

PUSH = {
    "thread_id": "t",
    "user_id": "ana",
    "messages": [
        {"role": "user", "content": "I live in Porto.", "id": "1"},
        {"role": "assistant", "content": "Nice.", "id": "2"},
    ],
}


@pytest.fixture
def settings(configured: Callable[..., Settings]) -> Settings:
    """A quiet time that no test waits for: keys are due when they are flushed."""
    return configured(scheduler__quiet_s=60, scheduler__max_wait_s=60)


def jsonl(*pushes: dict[str, Any]) -> str:
    return "\n".join(json.dumps(push, ensure_ascii=False) for push in pushes)


def test_push_flush_receipt_show_inject(cli_process: Cli, settings: Settings) -> None:
    """The whole way from the shell: push, flush, receipt, show, inject."""
    pushed = json.loads(cli_process("push", "--json", given=json.dumps(PUSH)).stdout)
    assert pushed[0]["status"] == "queued"
    with daemon(settings):
        flushed = cli_process("flush", "--user", "ana", "--wait")
    assert (flushed.returncode, flushed.stdout) == (0, "1 stored\n")
    receipt = json.loads(cli_process("receipt", pushed[0]["id"], "--json").stdout)
    assert receipt["state"] == "stored"
    assert "Porto" in cli_process("show", "ana").stdout
    assert json.loads(cli_process("show", "ana", "--json").stdout)["facts"][0]["id"] == receipt["fact_ids"][0]
    assert cli_process("inject", "ana").stdout.startswith("<memory>")


def test_push_takes_json_jsonl_and_arrays(cli: Cli, settings: Settings) -> None:
    """One object, a list, or one a line; from a file too."""
    second = PUSH | {"thread_id": "t2"}
    assert len(cli("push", given=jsonl(PUSH, second)).stdout.splitlines()) == 2
    assert len(cli("push", given=json.dumps([PUSH, second], indent=1)).stdout.splitlines()) == 2
    file = settings.data_dir / "push.jsonl"
    file.write_text(jsonl(PUSH), encoding="utf-8")
    assert cli("push", str(file), "--now").stdout.startswith("push 1: merged")


def test_a_bad_line_is_reported_and_the_rest_goes_on(cli: Cli) -> None:
    """Number and code on stderr, exit code 65; the good ones are pushed."""
    done = cli("push", given=jsonl(PUSH, PUSH | {"user_id": "secre\x07t"}, PUSH | {"thread_id": "t3"}))
    assert done.returncode == 65
    assert "push 2: E_USER_ID_CTRL" in done.stderr
    assert "secre" not in done.stderr
    assert len(done.stdout.splitlines()) == 2


def test_flush_times_out_with_code_4(cli: Cli) -> None:
    """With nobody at work, waiting ends with code 4 and says what waits."""
    cli("push", given=json.dumps(PUSH))
    done = cli("flush", "--wait", "--timeout", "0.3")
    assert (done.returncode, done.stdout) == (4, "1 waiting\n")


def test_flush_without_waiting_makes_keys_due(cli: Cli, memd: Memd) -> None:
    """Without --wait the keys of the selection are due, others are not."""
    cli("push", given=jsonl(PUSH, PUSH | {"user_id": "bob"}))
    assert cli("flush", "--user", "ana").stdout == "1 waiting\n"
    assert cli("flush", "--user", "nobody").stdout == "nothing was pending\n"


def test_a_death_is_code_3(cli: Cli, client: redis.Redis, settings: Settings) -> None:
    """When what was waited for died, the exit code is 3."""
    cli("push", given=json.dumps(PUSH))
    client.hset(f"{verbs.P}:ctx:{first_due(client)}", ".bucket", "0" * 32)  # as a wrong trusted client would
    with daemon(settings):
        assert cli("flush", "--wait").returncode == 3


def test_status_in_words_and_json(cli: Cli) -> None:
    """Figures for people and for scripts."""
    cli("push", given=json.dumps(PUSH))
    found = json.loads(cli("status", "--json").stdout)
    assert found["pending"] == 1
    assert found["server"]["durability"] == "append-only file"
    text = cli("status").stdout
    for word in ("pending", "due", "claimed", "dead", "stored", "skipped", "workers", "oldest waiting"):
        assert word in text
    assert "messages are kept for 180 days, redacted; said.enabled: false stops it\n" in text
    assert "messages are not kept\n" in cli("status", MEMD_SAID__ENABLED="false").stdout


def test_config_says_where_values_come_from(cli: Cli) -> None:
    """Each setting with its value and origin; secrets are masked."""
    done = cli("config", "--json", MEMD_SCHEDULER__QUIET_S="7", MEMD_EXTRACTION__API_KEY="hush")
    found = json.loads(done.stdout)
    assert found["scheduler.quiet_s"] == {"value": 7, "origin": "environment"}
    assert "hush" not in done.stdout
    lines = cli("config", MEMD_CLIENT__APPS='["shop", "desk"]', MEMD_EXTRACTION__API_KEY="hush").stdout.splitlines()
    shown = dict(line.split(maxsplit=1) for line in lines if len(line.split()) > 1)
    assert shown["client.apps"] == "shop, desk    (environment)"
    assert shown["apply.categories"].startswith("preference, knowledge, context, ")
    assert shown["extraction.api_key"] == "**********    (environment)"
    assert shown["http.hosts"] == "(environment)"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_what_the_table_says(name: str) -> None:
    """Each command of the table is found in its module, and its help begins with its line of the table."""
    command = load(name)
    assert command.name == name
    assert command.help.startswith(COMMANDS[name][1])


def test_every_module_is_in_the_table() -> None:
    """No module of commands is forgotten."""
    files = {file.stem for file in Path(memd.cli.__file__).parent.glob("*.py")}
    assert files - {
        "__init__",
        "app",
        "common",
        "bars",
        "completion",
        "doubtful",
        "every_user",
        "held_back",
        "fact_changes",
        "fact_filters",
        "interrupt",
        "output",
        "tables",
    } == {module for module, _ in COMMANDS.values()}


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["config"]])
def test_the_help_page_imports_no_command(words: list[str]) -> None:
    """The help page comes from the table: no command's module is loaded for it, and no client."""
    code = f"import sys; sys.argv = {['memd', *words]!r}\ntry: memd.main()\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", f"from memd import cli as memd\n{code}print('memd.client' in sys.modules)"],
        capture_output=True, text=True, timeout=ENDS_S, check=True,
    )  # fmt: skip
    assert done.stdout.endswith("False\n")


def test_a_command_that_is_misspelt_is_suggested(cli: Cli) -> None:
    """The suggestion comes from the table; no command is imported."""
    done = cli("pusch")
    assert done.returncode == 2
    assert "Did you mean 'push'" in done.stderr


@pytest.mark.parametrize(
    ("words", "env", "code", "sentence"),
    [
        (["status"], {"MEMD_QUITE_S": "1"}, 78, "unknown setting quite_s"),
        (["status"], {"MEMD_REDIS_URL": "unix:///nowhere/s"}, 69, "cannot be reached"),
        (["--config", "/nowhere/memd.yaml", "status"], {}, 78, "cannot be read"),
        (["receipt", "x"], {}, 65, "E_RECEIPT_ID"),
        (["show", "a\x07"], {}, 65, "E_USER_ID_CTRL"),
        (["push", "/nowhere/file"], {}, 2, "cannot be read"),
        (["nonsense"], {}, 2, "nonsense"),
        (["inject", "ana", "--max-tokens", "0"], {}, 2, "--max-tokens"),
    ],
)
def test_errors_are_one_sentence_with_a_code(
    cli: Cli, words: list[str], env: dict[str, str], code: int, sentence: str
) -> None:
    """No traceback, ever; the exit code says what kind of error it was."""
    done = cli(*words, **env)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_user_has_an_empty_memory(cli: Cli) -> None:
    """Nobody knows them yet: that is no error."""
    assert cli("inject", "nobody").stdout == ""
    assert cli("show", "nobody").returncode == 0


def test_every_command_has_help_with_an_example(cli: Cli) -> None:
    """`--help` of the commands that take arguments shows how to call them."""
    for command in ("up", "push", "flush", "receipt", "show", "inject", "status", "config", "acl", "doctor"):
        assert "Example:" in cli(command, "--help").stdout, command


def test_a_bad_line_is_named_by_its_line(cli: Cli) -> None:
    """Empty lines count, so that an editor finds it; with --json the bad one has its place in the answer too."""
    given = "\n\n" + json.dumps(PUSH) + "\n\n{bad\n"
    done = cli("push", "--json", given=given)
    assert done.returncode == 65
    assert done.stderr.startswith("push 5: E_JSON")
    assert [(answer["push"], answer["status"]) for answer in json.loads(done.stdout)] == [
        (3, "queued"),
        (5, "rejected"),
    ]


def test_an_outage_is_one_sentence_and_the_answer_stays_json(cli: Cli) -> None:
    """What a script reads is JSON, whatever became of the server."""
    done = cli("push", "--json", given=json.dumps(PUSH), MEMD_REDIS_URL="unix:///nowhere/s")
    assert (done.returncode, json.loads(done.stdout), len(done.stderr.splitlines())) == (69, [], 1)


def test_ctrl_c_is_quiet(cli: Cli, client: redis.Redis, configured: MakeSettings, settings: Settings) -> None:
    """Interrupting a wait ends with code 130 and says nothing."""
    library.install(client, configured(scheduler__quiet_s=60, scheduler__max_wait_s=60))  # only a flush makes it due
    cli("push", given=json.dumps(PUSH))
    with subprocess.Popen(
        [sys.executable, "-m", "memd", "flush", "--wait"],
        env=environment(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as waiting:
        wait_for(lambda: json.loads(cli("status", "--json").stdout)["due"], "the flush has begun")
        waiting.send_signal(signal.SIGINT)
        assert waiting.communicate(timeout=ENDS_S) == (b"", b"")
    assert waiting.returncode == 130


INTERRUPTED = """
import importlib.abc, os, signal, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[0]:
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass  # the handler runs here
            except KeyboardInterrupt:
                pass  # as a callback or a library's except swallows it

sys.meta_path.insert(0, Finder())
from memd.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "memd.cli.queue", "redis", "memd.inbox.flush"])
def test_ctrl_c_in_an_import_is_not_lost(
    cli: Cli, client: redis.Redis, configured: MakeSettings, settings: Settings, module: str
) -> None:
    """Pressed while the command's modules are imported, it ends the command as soon as the import is over."""
    library.install(client, configured(scheduler__quiet_s=60, scheduler__max_wait_s=60))
    cli("push", given=json.dumps(PUSH))
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv = {[module, 'flush', '--wait']}\n{INTERRUPTED}"],
        env=environment(settings),
        capture_output=True,
        check=False,
        timeout=ENDS_S,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_closed_pipe_is_quiet(settings: Settings) -> None:
    """`memd config | head -1` ends without a word on stderr."""
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "memd", "config"],
        env=environment(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.close()
        assert done.stderr.read() == b""


@pytest.mark.parametrize("words", [("status",), ("status", "--json"), ("pending",), ("where", "--json"), ("--help",)])
def test_a_full_disk_behind_the_output_is_one_sentence(
    settings: Settings, client: redis.Redis, words: tuple[str, ...]
) -> None:
    """With code 74, whether the command or its end writes the output."""
    library.install(client, settings)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "memd", *words],
            env=environment(settings), stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.stderr == "memd: standard output cannot be written (No space left on device)\n"
    assert done.returncode == 74


def test_a_file_system_that_fails_names_the_data_folder(cli: Cli) -> None:
    """The default may come from a variable that nobody remembers."""
    done = cli("users", MEMD_DATA_DIR="", XDG_DATA_HOME="/dev/null")
    assert done.returncode == 74
    assert "the data folder is /dev/null/memd" in done.stderr
