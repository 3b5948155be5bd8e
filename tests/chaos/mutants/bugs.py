"""The seeded bugs, as edits of memd's source, and the run or test that must catch each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from chaos.plan import Plan

LUA = "memd/inbox/lua/"
ROWS = "memd/memory/store/postgres/"
FAULTS = "faults/test_postgres.py"
BACKUPS = "faults/test_backup.py"
JSON, POSTGRES = ("json",), ("postgres",)


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in a file of the packages, which must contain `old` exactly once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug and its catchers: any of these figures of a chaos run, or an ordinary test."""

    name: str
    edits: tuple[Edit, ...]
    figures: tuple[str, ...] = ()
    """Names of `report.ZEROS`, or `drain` for a run that never ends, `late` for one that ends too late."""

    plan: Callable[[int], Plan] | None = None
    test: str = ""
    """A test of the suite, for bugs that need a second writer of the document, or another fault than a kill."""

    stores: tuple[str, ...] = ("json", "postgres")
    """The stores that can have it (`STORE`)."""


def busy(seed: int) -> Plan:
    """Ten seconds under load; most kills hit drains."""
    return Plan(
        seed,
        contexts=2_000,
        users=20,
        threads=4,
        producers=4,
        pushing_s=10,
        calm_s=1,
        kill_every_s=0.4,
        kills=25,
        shares=(("child", 8), ("scheduler", 1), ("producer", 1)),
        least_kills=0,
        lease_s=1.0,
        pace_users=0,
        recover_s=60,
        patience_s=60,
        watch_pause_s=0.001,
    )


def slow_model(seed: int) -> Plan:
    """Model calls that take longer than a lease, and no kills."""
    return Plan(
        seed,
        contexts=40,
        users=10,
        threads=2,
        producers=2,
        schedulers=1,
        pushing_s=2,
        kills=0,
        least_kills=0,
        lease_s=1.0,
        model_delay_s=2.0,
        pace_users=0,
        recover_s=30,
        patience_s=30,
    )


def recovering(seed: int) -> Plan:
    """The same load and kills, with the time that the last drain may take told by the pace of the machine."""
    usual = Plan(seed)
    return replace(busy(seed), pace_users=usual.pace_users, recover_s=usual.recover_s)


_LOAD = """\
    def _read_or_mend(self, owner: Bucket) -> Loaded:
        try:
            return self._read(owner)
        except DocumentTooNew:
"""
_LOAD_ONCE = """\
    def _read_or_mend(self, owner: Bucket) -> Loaded:
        try:
            if owner not in _KEPT:
                _KEPT[owner] = self._read(owner)
            return _KEPT[owner]
        except DocumentTooNew:
"""
_COMMIT = "self._store.commit(key.bucket, loaded, kept.document, lambda: self._still_ours(work), taken, kept.said)"
_ACK_AND_COMMIT = """\
send(self._resources.client, verbs.ack(work.part.claim.id, {"state": "stored"}, {}))
                self._store.commit(key.bucket, loaded, kept.document, lambda: True, taken, kept.said)"""
_CHECK = "            if document_file.hash_on_disk(file) != loaded.content_hash:\n"
_TAKEN = """\
  call('LPOP', list)
  call('HINCRBY', P .. ':taken', list, 1)
  return 'taken'
"""
_HEAD = "  if not head or redis.sha1hex(head) ~= argv[1] then return 'moved' end\n"
_EACH_TAKEN = "        *answers, behind = sent.land()\n"
_ALL_POPPED = """\
        *answers, _ = sent.land()
        self._client.lpop(source, len(heads))
        self._client.hincrby("{memd}:taken", source, len(heads))
        behind = self._client.lrange(source, PART, 2 * PART - 1)
"""

_PARTS = "        parts = Parts(claim, self._resources.settings.drain.max_attempts)\n"
_A_MINUTE = """\
        if claim.came_back:
            await __import__("asyncio").sleep(60)
"""
_LANDED = "            if self._has_landed(ordered, landed):\n"
_INBOX = "        inbox = kept.write_inbox(_contents(settings, client), progress)\n"
_MEMORIES = '        done = copying.run(steps("memories"))\n'
_PAIR = "        return call.parse(execute(_pair(client.pipeline(transaction=False), call)))\n"
_APART = """\
        other: Any = client.connection_pool.get_connection()
        first: Any = client.execute_command(*call.command)
        other.send_command(*call.then)
        return call.parse([first, other.read_response()])
"""

BUGS = (
    Bug(
        "no ledger",
        (
            Edit(
                "memd/memory/ledger.py",
                "        held = set(ledger.get(thread_id, ()))\n",
                "        held = set[str]()\n",
            ),
        ),
        ("twice",),
        busy,
        stores=JSON,
    ),
    Bug(
        "no ledger in PostgreSQL",
        (Edit("memd/memory/store/postgres/ledger_rows.py", "        if names:\n", "        if not names:\n"),),
        ("twice",),
        busy,
        stores=POSTGRES,
    ),
    Bug("ack before write", (Edit("memd/workers/commit.py", _COMMIT, _ACK_AND_COMMIT),), ("lost",), busy),
    Bug(
        "ack before the outbox is delivered",
        (
            Edit(
                "memd/workers/remember.py",
                "        deliveries = await self._resources.in_thread(self._documents.deliver, answered)\n",
                "        return stored\n",
            ),
        ),
        ("lost",),
        busy,
    ),
    Bug(
        "the mark taken from the last push",
        (
            Edit(
                f"{LUA}ground.lua",
                "  a, mark = without_mark(a)\n  b = without_mark(b)\n",
                "  a = without_mark(a)\n  b, mark = without_mark(b)\n",
            ),
        ),
        test="flow/test_projects.py::test_the_first_push_marks_a_message_for_good",
    ),
    Bug(
        "write from a stale read",
        (
            Edit(
                "memd/memory/store/json_store.py",
                "\nclass JsonStore:\n",
                "\n_KEPT: dict[Bucket, Loaded] = {}\n\n\nclass JsonStore:\n",
            ),
            Edit("memd/memory/store/json_store.py", _LOAD, _LOAD_ONCE),
            Edit("memd/memory/store/json_store.py", _CHECK, "            if False:\n"),
            Edit(
                "memd/memory/store/json_store.py",
                '        return Loaded(document, document["revision"], document_file.hash_of(data), '
                "tombstone=loaded.tombstone)\n",
                '        _KEPT[owner] = Loaded(document, document["revision"], document_file.hash_of(data))\n'
                "        return replace(_KEPT[owner], tombstone=loaded.tombstone)\n",
            ),
        ),
        ("lost", "backwards"),
        busy,
        stores=JSON,
    ),
    Bug(
        "write in place",
        (
            Edit(
                "memd/disk/files.py",
                "        temp.replace(file)\n",
                "        file.write_bytes(data)\n        temp.unlink()\n",
            ),
        ),
        ("torn",),
        busy,
        stores=JSON,
    ),
    Bug(
        "a raw push taken in in two steps",
        (
            Edit(f"{LUA}take.lua", _HEAD, "  if not head then return 'moved' end\n"),
            Edit(f"{LUA}take.lua", _TAKEN, "  return 'taken'\n"),
            Edit("memd/inbox/raw_door.py", _EACH_TAKEN, _ALL_POPPED),
        ),
        ("lost",),
        busy,
    ),
    Bug(
        "no revision check",
        (Edit("memd/memory/store/json_store.py", _CHECK, "            if False:\n"),),
        test="unit/test_stores.py::test_a_stale_document_is_not_written",
        stores=JSON,
    ),
    Bug(
        "no revision check in PostgreSQL",
        (
            Edit(
                f"{ROWS}document_rows.py",
                "AND revision = %(was)s AND hash = %(was_hash)s AND {FENCES}",
                "AND {FENCES}",
            ),
        ),
        test="unit/test_stores.py::test_a_stale_document_is_not_written",
        stores=POSTGRES,
    ),
    Bug(
        "a commit that does not ask for the tombstone",
        (Edit(f"{ROWS}document_rows.py", "%(fenced)s), 0) = %(generation)s", "%(fenced)s), 0) >= 0"),),
        test="unit/test_stores.py::test_a_commit_after_a_forgetting_began_is_a_conflict",
        stores=POSTGRES,
    ),
    Bug(
        "a tombstone without the owner's lock",
        (
            Edit(
                "memd/memory/store/tombstone.py",
                "with locked(paths.owner_lock(self._data_dir, owner)), self._writing(owner):",
                "with self._writing(owner):",
            ),
        ),
        test="unit/test_store.py::test_a_forgetting_waits_for_a_commit_and_others_do_not",
        stores=JSON,
    ),
    Bug(
        "a tombstone without the owner's lock in PostgreSQL",
        (
            Edit(
                f"{ROWS}tombstone_rows.py",
                "self._change(wish, grown, owner_lock(user_hash(wish.user_id)))",
                "self._change(wish, grown)",
            ),
        ),
        test=f"{FAULTS}::test_a_forgetting_waits_for_a_commit_that_has_asked_before_it",
        stores=POSTGRES,
    ),
    Bug(
        "a restore that replaces tombstones",
        (Edit("memd/ops/restoring.py", "        if other is not None:\n", "        if False:\n"),),
        test=f"{BACKUPS}::test_who_was_forgotten_since_stays_forgotten[inbox]",
    ),
    Bug(
        "a backup that reads the inbox last",
        (
            Edit("memd/ops/backing_up.py", _INBOX, ""),
            Edit("memd/ops/backing_up.py", _MEMORIES, f"{_MEMORIES}{_INBOX}"),
        ),
        test=f"{BACKUPS}::test_what_is_stored_while_it_runs_is_in_it[True]",
    ),
    Bug(
        "a commit of unknown end taken for done",
        (Edit(f"{ROWS}committing.py", _LANDED, "            if True:\n"),),
        test=f"{FAULTS}::test_a_connection_that_is_cut_before_the_commit_arrives_costs_one_more_try",
        stores=POSTGRES,
    ),
    Bug(
        "a commit of unknown end done again",
        (Edit(f"{ROWS}committing.py", _LANDED, "            if False:\n"),),
        test=f"{FAULTS}::test_a_connection_that_is_cut_after_the_commit_is_no_second_commit",
        stores=POSTGRES,
    ),
    Bug(
        "WAIT on another connection",
        (Edit("memd/inbox/connection.py", _PAIR, _APART),),
        test="faults/test_failover.py::test_a_push_that_too_few_replicas_have_is_unconfirmed[frozen]",
        stores=JSON,
    ),
    Bug(
        "lease never extended",
        (
            Edit(
                "memd/workers/drain.py",
                "            ids = [claim.id for claim in self._running.values()]\n",
                "            ids: list[str] = []\n",
            ),
        ),
        ("drain", "dead"),
        slow_model,
    ),
    Bug(
        "a claim that came back takes a minute",
        (Edit("memd/workers/remember.py", _PARTS, f"{_PARTS}{_A_MINUTE}"),),
        ("late",),
        recovering,
    ),
    Bug(
        "claim buried for one message",
        (Edit("memd/inbox/claim.py", "    if refused and not messages:\n", "    if refused:\n"),),
        test="flow/test_bad_content.py::test_one_bad_message_does_not_take_the_others_along",
    ),
    Bug(
        "release that drops what it held",
        (
            Edit(
                f"{LUA}settle.lua",
                "      size = size + put_message_back(ctx, field, value)\n",
                "      size = size + 0\n",
            ),
        ),
        ("lost",),
        busy,
    ),
    Bug(
        "server without lock",
        (Edit("memd/ops/locks.py", "    while not _try(descriptor):\n", "    while False:\n"),),
        test="faults/test_server.py::test_a_folder_has_one_server_even_when_that_one_is_silent",
    ),
    Bug(
        "mending that takes what came later",
        (
            Edit(
                "memd/inbox/forgetting.py",
                'return "" if cut is None else f',
                'return "" if cut else f',
            ),
        ),
        test="flow/test_forget.py::test_what_is_accepted_after_the_server_is_back_survives",
    ),
)
