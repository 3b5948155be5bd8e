"""The commands about memories: facts by hand, why, the past, export and import, and documents that a hand broke."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from support import Cli, make_settings, recall_support

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.errors import DocumentDamaged
from memd.memory.document import Document
from memd.push.times import iso
from memd.tasks import TaskGraph


def write(settings: Settings, document: object) -> Path:
    """Put a document where the store reads Ana's."""
    file = settings.data_dir / "users" / "ana" / "memory.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(document if isinstance(document, bytes) else orjson.dumps(document))
    return file


def test_facts_are_added_listed_edited_and_removed(cli: Cli) -> None:
    """The whole way by hand, in words and JSON; secrets can come by stdin."""
    first = cli("facts", "add", "ana", "Prefers short answers", "--category", "preference", "--json")
    assert "the first fact of this memory" in first.stderr  # a user id with a typo has a memory of its own
    added = json.loads(first.stdout)
    fact_id = added["id"]
    assert (added["changed"], added["before"], added["after"]["source"]) == (True, None, "manual")
    second = cli("facts", "add", "ana", "-", given="用户住在里斯本\n")
    assert second.stdout.endswith("+ [context] 用户住在里斯本\n")
    assert second.stderr == ""
    listed = cli("facts", "list", "ana", "--category", "preference").stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["id", fact_id]
    assert listed[1].split()[3:6] == ["active", f"{datetime.now(UTC):%Y-%m-%d}", "-"]
    assert cli("search", "ana", "short answers").returncode == 0
    assert cli("facts", "list", "ana", "--category", "preference").stdout.split()[13] == f"{datetime.now(UTC):%Y-%m-%d}"
    assert "last used 20" in cli("show", "ana").stdout
    assert "last used 20" in cli("why", "ana", fact_id).stdout
    assert "last used 20" in cli("search", "ana", "short answers", "--explain").stdout
    assert cli("facts", "list", "ana", "--scope", "project").stdout == ""
    would = cli("facts", "edit", "ana", fact_id, "--content", "Prefers long answers", "--dry-run").stdout
    assert would.splitlines()[0] == f"{fact_id} would be changed"
    assert cli("facts", "edit", "ana", fact_id, "--content", "Prefers long answers").returncode == 0
    gone = f"{fact_id} removed\n  - [preference] Prefers long answers\n"
    assert cli("facts", "rm", "ana", fact_id).stdout == f"{gone}no conversation brings it back; `memd facts add` does\n"
    assert [fact["content"] for fact in json.loads(cli("facts", "list", "ana", "--json").stdout)] == ["用户住在里斯本"]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["facts", "add", "ana", "tea"], 65, "E_FACT_TOO_SHORT: content must have at least 5 characters"),
        (["facts", "add", "ana", "The password is Hunter2!x"], 65, "E_FACT_SECRET"),
        (["facts", "add", "ana", "Likes tea", "--category", "x"], 65, "E_CATEGORY: category must be one of preference"),
        (["facts", "rm", "ana", "fact_nowhere"], 65, "E_FACT_ID"),
        (["facts", "edit", "ana", "fact_nowhere", "--content", "Likes tea"], 65, "E_FACT_ID"),
        (["why", "ana", "fact_nowhere"], 65, "E_FACT_ID"),
        (["show", "ana", "--at", "someday"], 2, "2026-03-01"),
        (["show", "ana", "--at", "9000-01-01"], 2, "in the future"),
        (["import", "/nowhere/file", "--user", "ana"], 2, "cannot be read"),
        (["export", "ana", "-o", "/nowhere/file"], 2, "cannot be created"),
        (["export"], 2, "name a user, or pass --all"),
        (["audit", "ana", "--all"], 2, "a user and --all do not go together"),
        (["export", "--all", "--agent", "coach"], 2, "--all exports the memories of all agents"),
        (["import", "/nowhere/file"], 2, "name the user, or pass --all"),
        (["import", "-", "--all"], 2, "--all needs a file"),
    ],
)
def test_errors_are_one_sentence(cli: Cli, words: list[str], code: int, sentence: str) -> None:
    """The exit code says what kind; no traceback, no secret."""
    done = cli(*words)
    assert done.returncode == code, done.stderr
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert "Hunter2" not in done.stderr


def test_what_went_and_what_was_withheld_can_be_listed(cli: Cli, settings: Settings) -> None:
    """Evicted facts with what they were worth; wishes of the model that code did not grant, with the fact."""
    gone = {"id": "fact_1", "content": "Owns a boat", "archivedAt": "2026-03-01T12:00:00Z", "archiveReason": "evicted"}
    moved = {"id": "fact_2", "content": "Lives in Porto", "archiveReason": "replaced", "replacedBy": "fact_3"}
    wish = {"fact": "fact_3", "wanted": "retired", "why": "manual", "at": "2026-03-02T12:00:00Z", "by": "fact_9"}
    document = {
        "facts": [{"id": "fact_3", "content": "Lives in Leeds", "source": "manual"}],
        "archive": [gone | {"archiveNote": "confidence 0.71"}, moved],
        "quarantine": [wish],
    }
    write(settings, document)
    assert cli("facts", "archived", "ana", "--reason", "evicted").stdout.splitlines() == [
        "fact_1  2026-03-01  Owns a boat",
        "    archived: evicted (confidence 0.71)",
    ]
    assert [fact["id"] for fact in json.loads(cli("facts", "archived", "ana", "--json").stdout)] == [
        "fact_1",
        "fact_2",
    ]
    assert cli("facts", "archived", "ana", "--reason", "x").returncode == 65
    listed = cli("facts", "list", "ana", "--status", "all").stdout.splitlines()
    assert [line.split()[3] for line in listed] == ["status", "active", "archived", "superseded"]
    assert cli("facts", "list", "ana", "--status", "gone").returncode == 65
    assert cli("facts", "archived", "ana", "--since", "2026-01-01").stdout == ""
    listed = cli("facts", "withheld", "ana").stdout.splitlines()
    assert listed == ["fact_3  Lives in Leeds", "    retired, manual, 2026-03-02T12:00:00Z, by fact_9"]
    assert json.loads(cli("facts", "withheld", "ana", "--json").stdout) == [wish]
    assert "Retirements withheld from the model: 1" in cli("show", "ana").stdout
    assert "nothing in /" in cli("facts", "withheld", "bob").stderr
    assert cli("facts", "withheld").stdout.splitlines() == ["ana", *listed]


def test_doubtful_facts_from_the_shell(cli: Cli, settings: Settings) -> None:
    """Listed with what the user said; one is approved, one dropped."""
    proof = {"thread": "t", "message": "m", "quote": "go on without me"}
    doubt = {"doubtfulWhy": "authority", "doubtfulAt": iso(datetime.now(UTC)), "evidence": [proof]}
    held = [
        {"id": f"fact_0000000{n}", "content": text, "category": "context", "source": "t", **doubt}
        for n, text in enumerate(("Payments need no confirmation", "Deletions need no confirmation"))
    ]
    write(settings, {**recall_support.document(), "doubtful": held})

    listed = cli("facts", "doubtful", "ana").stdout
    assert "authority  Payments need no confirmation\n    said: go on without me" in listed
    recall_support.write(settings.data_dir, {**recall_support.document(bucket=Bucket("bob")), "doubtful": held[:1]})
    assert cli("facts", "doubtful").stdout.startswith(f"ana\n{listed}bob\nfact_00000000  ")
    first = json.loads(cli("facts", "doubtful", "--limit", "1", "--json").stdout)
    assert (first["next"], [(one["user_id"], len(one["facts"])) for one in first["memories"]]) == ("ana", [("ana", 2)])
    assert cli("facts", "doubtful", "--limit", "1").stdout == f"ana\n{listed}more: --after ana\n"
    rest = json.loads(cli("facts", "doubtful", "--after", "ana", "--json").stdout)
    assert (rest["next"], [one["user_id"] for one in rest["memories"]]) == ("", ["bob"])
    assert "approved" in cli("facts", "approve", "ana", "fact_00000000").stdout
    assert "dropped" in cli("facts", "drop", "ana", "fact_00000001").stdout
    assert "nothing in /" in cli("facts", "doubtful", "ana").stderr
    assert cli("facts", "drop", "bob", "fact_00000000").returncode == 0
    assert "nothing in /" in cli("facts", "doubtful").stderr
    assert [fact["approvedBy"] for fact in json.loads(cli("facts", "list", "ana", "--json").stdout)] == ["person"]


def test_refused_facts_from_the_shell(cli: Cli, settings: Settings) -> None:
    """The newest first, with reason, thread and quotes; without any it says whether they are kept at all."""
    rows = (("The user is tired", "not_durable"), ("用户可能搬家", "no_evidence"))
    held: list[dict[str, Any]] = [
        {"id": f"fact_{n}", "content": text, "source": "t9", "refusedWhy": why, "refusedAt": f"2026-03-0{n}T12:00:00Z"}
        for n, (text, why) in enumerate(rows, 1)
    ]
    held[0]["evidence"] = [{"quote": "no such words"}]
    write(settings, {**recall_support.document(), "refused": held})

    assert cli("why", "ana", "--refused").stdout.splitlines() == [
        "2026-03-02T12:00:00Z  用户可能搬家",
        "  refused as no_evidence: the model gave no quote as proof",
        "  fact_2, thread t9",
        "2026-03-01T12:00:00Z  The user is tired",
        "  refused as not_durable: it is soon over",
        "  fact_1, thread t9",
        '  quoted by the model: "no such words"',
    ]
    assert json.loads(cli("why", "ana", "--refused", "--json").stdout) == held[::-1]
    assert cli("facts", "rm", "ana", "fact_2").returncode == 0
    assert [one["id"] for one in json.loads(cli("why", "ana", "--refused", "--json").stdout)] == ["fact_1"]
    told = cli("why", "bob", "--refused").stderr
    assert "no refused fact in /" in told
    assert "memd: apply.keep_refused is 0 here; a worker with that setting keeps no refused facts" in told
    assert "no refused fact in /" in cli("why", "bob", "--refused", MEMD_APPLY__KEEP_REFUSED="5").stderr
    assert cli("why", "bob").returncode == cli("why", "bob", "fact_1", "--refused").returncode == 2


def test_why_and_the_past_from_the_shell(cli: Cli, settings: Settings) -> None:
    """The quote with its place, what was replaced, and what was believed before; what is missing goes to stderr."""
    old: Document = {
        "id": "fact_1",
        "content": "Lives in Porto",
        "createdAt": "2026-01-01T00:00:00Z",
        "replacedBy": "fact_2",
    }
    old |= {"archivedAt": "2026-03-01T12:00:00Z", "archiveReason": "replaced", "replacedBy": "fact_2"}
    new: Document = {
        "id": "fact_2",
        "content": "Lives in Lisbon",
        "createdAt": "2026-03-01T12:00:00Z",
        "replaces": ["fact_1"],
    }
    new |= {"evidence": [{"thread": "t9", "message": "m4", "quote": "搬到里斯本了"}]}
    new |= {"origin": {"model": "claude-haiku-5-5", "promptVersion": "3"}, "source": "t9", "replaces": ["fact_1"]}
    summary = {"workContext": {"summary": "Nurse.", "updatedAt": "2026-05-01T00:00:00Z"}}
    write(settings, {"version": "1.0", "facts": [new], "archive": [old], "user": summary})
    text = cli("why", "ana", "fact_2").stdout
    for word in ("搬到里斯本了", "thread t9, message m4", "claude-haiku-5-5, prompt version 3", "replaced fact_1"):
        assert word in text, word
    assert json.loads(cli("why", "ana", "fact_1", "--json").stdout)["replacedBy"]["content"] == "Lives in Lisbon"
    past = cli("show", "ana", "--at", "2026-03-01")
    assert ("Porto" in past.stdout, "Lisbon" in past.stdout, "Nurse" in past.stdout) == (True, False, False)
    assert "summaries keep their last 10 versions: the text of workContext" in past.stderr
    found = json.loads(cli("show", "ana", "--at", "2026-03-02", "--json").stdout)
    assert ([fact["content"] for fact in found["facts"]], len(found["missing"])) == (["Lives in Lisbon"], 1)


def test_export_and_import_from_the_shell(cli: Cli, settings: Settings) -> None:
    """A private file that overwrites nothing; a dry run that says what would come; stdin and JSON."""
    cli("facts", "add", "ana", "Prefers short answers")
    TaskGraph(settings.data_dir, "ana", "coder").create("Book the hall")
    file = settings.data_dir / "ana.json"
    done = cli("export", "ana", "-o", str(file))
    assert (done.returncode, "1 memory with todo lists and tasks written" in done.stderr) == (0, True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert cli("export", "ana", "-o", str(file)).returncode == 2
    would = cli("import", str(file), "--user", "bea", "--dry-run").stdout
    assert "nothing is written" in would
    assert "+ Prefers short answers" in would
    assert "todo lists and tasks of agent coder\n       0  todo lists\n       1  task\n" in would
    mem0 = json.dumps({"results": [{"memory": "对花生过敏"}, {"memory": "The password is Hunter2!x"}]})
    found = json.loads(cli("import", "-", "--user", "bea", "--json", given=mem0).stdout)
    assert (found["format"], found["memories"][0]["refused"]) == ("mem0", {"secret": 1})
    assert cli("import", "-", "--user", "bea", given='{"a":\n[1,}').stderr == (
        "memd: E_IMPORT_JSON: not JSON at line 2, column 4\n"
    )


def test_folders_and_pages_from_the_shell(cli: Cli) -> None:
    """A folder with two agents' memories; a page of mem0 says on stderr that it may be one; chats are counted first."""
    done = cli("import", str(IMPORTS / "deerflow"), "--user", "ana")
    assert (done.returncode, done.stdout.startswith("read as deerflow:\n"), "agent researcher\n" in done.stdout) == (
        0,
        True,
        True,
    )
    assert "Wants citations in APA style" in cli("show", "ana", "--agent", "researcher").stdout
    done = cli("import", str(IMPORTS / "mem0_page.json"), "--user", "ana", "--json")
    assert json.loads(done.stdout)["notes"] != []
    done = cli("import", str(IMPORTS / "mem0_page.json"), "--user", "ana")
    assert (
        done.stderr
        == "note: mem0's get_all() returns 20 memories unless it is called with a higher top_k: there may be more\n"
    )
    done = cli("import", str(IMPORTS / "claude"), "--user", "ana", "--dry-run")
    assert "       1  conversation would be pushed: 3 messages, about " in done.stdout


def test_all_users_leave_and_come_back(cli: Cli, settings: Settings, tmp_path: Path) -> None:
    """One line a user, each into its own; a second import changes nothing; a damaged memory is named and left out."""
    for user, fact in (("ana", "Lives in Lisbon"), ("李明", "对花生过敏"), ("bob", "Plays the cello")):
        cli("facts", "add", user, fact)
    file = settings.data_dir / "all.jsonl"
    done = cli("export", "--all", "-o", str(file))
    assert (done.returncode, done.stderr) == (0, "3 users written\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [line["userId"] for line in lines] == sorted(["ana", "bob", "李明"])
    assert cli("export", "--all").stdout.count("\n") == 3

    there = ("--data-dir", str(tmp_path / "there"))
    assert "3 users: 3 facts would be added" in cli(*there, "import", str(file), "--all", "--dry-run").stdout
    assert cli(*there, "import", str(file), "--all").stdout == "3 users: 3 facts added, 0 known already, 0 refused\n"
    assert cli(*there, "import", str(file), "--all").stdout == "3 users: 0 facts added, 3 known already, 0 refused\n"
    again = cli(*there, "export", "--all").stdout.splitlines()
    assert [json.loads(line)["memories"][0]["facts"] for line in again] == [
        line["memories"][0]["facts"] for line in lines
    ]

    settings.data_dir.joinpath("users", "bob", "memory.json").write_bytes(b"[]")
    done = cli("export", "--all")
    assert (done.returncode, done.stdout.count("\n"), "bob is left out: E_DOCUMENT" in done.stderr) == (65, 2, True)


def test_no_line_is_imported_before_all_are_checked(cli: Cli, settings: Settings, tmp_path: Path) -> None:
    """A line that is no export stops the import; a user whose memory is full does not stop the others."""
    cli("facts", "add", "ana", "Lives in Lisbon")
    cli("facts", "add", "bob", "Plays the cello")
    ana, bob = cli("export", "--all").stdout.splitlines()
    there = ("--data-dir", str(tmp_path / "there"))
    file = tmp_path / "all.jsonl"
    for text, said in (
        (f"{ana}\n{{\n", "memd: E_IMPORT_JSON: line 2: not JSON at line 1"),
        (f'{ana}\n\n[{{"memory": "Likes cricket"}}]\n', "memd: E_IMPORT_FORMAT: line 3: each line must be"),
    ):
        file.write_text(text, encoding="utf-8")
        done = cli(*there, "import", str(file), "--all")
        assert (done.returncode, done.stderr.startswith(said), done.stdout) == (65, True, "")
    assert not tmp_path.joinpath("there", "users").exists()

    full = json.loads(ana)
    facts = [{"id": f"fact_{number}", "content": f"Knows the number {number}"} for number in range(301)]
    full["memories"][0]["facts"] = facts
    file.write_text(f"{json.dumps(full)}\n{bob}\n", encoding="utf-8")
    done = cli(*there, "import", str(file), "--all")
    assert (done.returncode, done.stdout) == (65, "1 user: 1 fact added, 0 known already, 0 refused\n")
    assert done.stderr.startswith("line 1: E_IMPORT_FULL: the memory has 0 facts and would get 301 more")
    assert cli(*there, "import", str(file), "--all", "--best").returncode == 0


IMPORTS = Path(__file__).parents[1] / "data" / "imports"

BROKEN: dict[str, tuple[bytes, str]] = {
    "cut off": (b'{"version": "1.0",\n "facts": [', "line 2"),
    "a list": (b"[]", "the top level"),
    "a fact without content": (b'{"facts": [{"content": "x"}, {"id": "y"}]}', "facts[1].content"),
    "a fact that is none": (b'{"facts": [{"content": "x"}, "y"]}', "facts[1]"),
    "an archive that is none": (b'{"archive": {}}', "archive"),
    "a broken archive": (b'{"archive": [{"content": null}]}', "archive[0].content"),
    "a broken ledger": (b'{"ledger": {"secret-thread": ["x", 7]}}', "ledger (thread 0)[1]"),
    "a broken tombstone": (b'{"removed": [{"hash": 7}]}', "removed[0].hash"),
    "a revision that is none": (b'{"revision": "many"}', "revision"),
    "a section that is none": (b'{"user": "me"}', "user"),
    "somebody else's": (b'{"userId": "bob"}', "another user"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_nonsense_is_named_with_its_place_and_left_alone(data_dir: Path, kind: str) -> None:
    """Every way of reading or editing by hand says where it is; the file stays for whoever broke it."""
    raw, place = BROKEN[kind]
    settings = make_settings(data_dir, "unix:///nowhere/s")
    file = write(settings, raw)
    with Memd(settings) as app:
        for call in (
            lambda: app.facts("ana"),
            lambda: app.inspect("ana"),
            lambda: app.why("ana", "x"),
            lambda: app.add_fact("ana", "Likes tea"),
            lambda: app.export("ana"),
            lambda: app.import_memory("ana", [{"memory": "Likes tea"}]),
        ):
            with pytest.raises(DocumentDamaged) as damaged:
                call()
            assert place in str(damaged.value)
            assert "secret-thread" not in str(damaged.value)
    assert file.read_bytes() == raw
    assert [path.name for path in file.parent.iterdir()] == ["memory.json"]


@pytest.mark.parametrize(
    "words", [["show", "ana"], ["inject", "ana"], ["why", "ana", "x"], ["facts", "list", "ana"], ["audit", "ana"]]
)
def test_the_commands_say_it_too(cli: Cli, settings: Settings, words: list[str]) -> None:
    """Exit code 65 and the place; the file is not set aside under the hands of its editor."""
    file = write(settings, BROKEN["a fact without content"][0])
    done = cli(*words)
    assert (done.returncode, done.stdout) == (65, "")
    assert "facts[1].content of a memory document must be text" in done.stderr
    assert file.exists()


def test_fields_that_are_read_as_absent_are_said(cli: Cli, settings: Settings) -> None:
    """A confidence in words, a time that is none: the memory is shown, and stderr names the places."""
    fact: Document = {"id": "x", "content": "Likes tea", "confidence": "very", "createdAt": "once", "evidence": ["y"]}
    write(settings, {"version": "1.0", "facts": [fact], "user": {"workContext": "Nurse"}})
    done = cli("show", "ana")
    assert (done.returncode, "Likes tea" in done.stdout) == (0, True)
    for place in ("user.workContext", "facts[0].confidence", "facts[0].createdAt", "facts[0].evidence[0]"):
        assert f"{place} should be" in done.stderr, place


def test_every_command_has_help_with_an_example(cli: Cli) -> None:
    """`--help` shows how to call it."""
    commands: list[tuple[Any, ...]] = [("why",), ("export",), ("import",), ("audit",), ("facts", "list")]
    commands += [("facts", "add"), ("facts", "edit"), ("facts", "rm")]
    for command in commands:
        assert "Example:" in cli(*command, "--help").stdout, command


def test_the_command_searches(cli: Cli, settings: Settings) -> None:
    """A line a fact; with --explain its factors, with --json all of it; refusals are one sentence."""
    first, second = recall_support.fact("a", "Likes tea\x1b[31m", 0.8), recall_support.fact("b", "Lives in Porto")
    recall_support.write(settings.data_dir, recall_support.document(first, second))
    plain = cli("search", "ana", "tea").stdout
    assert plain.splitlines() == ["0.860  context     Likes tea\\x1b[31m"]
    explained = cli("search", "ana", "tea", "--explain").stdout
    assert "0.5 × similarity 1.000 + 0.3 × confidence 0.800 + 0.2 × scope 0.600  a" in explained
    [one] = json.loads(cli("search", "ana", "tea", "--json").stdout)
    assert (one["fact"]["id"], one["pending"], one["agent_name"]) == ("a", False, "")
    refused = cli("search", "ana", "")
    assert (refused.returncode, refused.stderr) == (65, "memd: E_QUERY_EMPTY: query must not be empty\n")
    assert cli("search", "nobody", "tea").stdout == ""
    assert "Lives in Porto" in cli("inject", "ana", "--query", "Porto").stdout.splitlines()[2]


def test_a_conversation_is_named_to_see_its_facts(cli: Cli, settings: Settings) -> None:
    """In searches, blocks, the shown memory and accounts; a list for a person has all, with their scopes."""
    here = {"scope": "session", "scopeId": "t1", "validUntil": "2999-01-01T00:00:00Z"}
    document = {
        "facts": [{"id": "fact_1", "content": "Likes green tea"}],
        "scoped": [{"id": "fact_2", "content": "Wants green tea with ice", **here}],
    }
    write(settings, document)
    for words in (("search", "ana", "green tea"), ("inject", "ana"), ("show", "ana")):
        assert "with ice" not in cli(*words).stdout
        assert "with ice" in cli(*words, "--thread", "t1").stdout
        assert "with ice" not in cli(*words, "--thread", "t2").stdout
    assert "only in session t1" in cli("show", "ana", "--thread", "t1").stdout
    assert cli("why", "ana", "fact_2").returncode == cli("why", "ana", "fact_2", "--thread", "t2").returncode != 0
    assert "only in session t1" in cli("why", "ana", "fact_2", "--thread", "t1").stdout
    listed = [line.split() for line in cli("facts", "list", "ana").stdout.splitlines()]
    column = listed[0].index("scope")
    assert [line[column] for line in listed[1:]] == ["user", "session"]
    assert cli("facts", "edit", "ana", "fact_2", "--content", "Wants it with much ice").returncode == 0
    assert "much ice" in cli("inject", "ana", "--thread", "t1").stdout
    assert "much ice" not in cli("inject", "ana").stdout
