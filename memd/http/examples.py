"""One request and its response for each operation, as the OpenAPI document and `/docs` show them.

The tests check each request by the operation's own fields, and each response by its schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Example(NamedTuple):
    """A request and its response. `fields`: of path and query; `request`: the body; `response`: None without a body."""

    fields: Mapping[str, Any] = {}
    request: Mapping[str, Any] | None = None
    response: Any = None


NO_FIELDS = Example()

_AT, _LATER = "2026-03-01T09:30:00Z", "2026-03-02T18:00:00Z"
_ANA = {"user_id": "ana"}
_APOLLO = {"user_id": "ana", "project_id": "apollo"}
_ID, _OTHER, _LETTER_ID = "fact_0badcafe", "fact_11223344", "4f1d2c3b4a59-0a1b2c3d"
_RECEIPT = "0123456789abcdef0123456789abcdef.0a1b2c3d.1"
_ONE = {"id": _ID}
_OF_ANA, _OF_APOLLO = {"fact_id": _ID, **_ANA}, {"fact_id": _ID, **_APOLLO}

_QUOTE = {"thread": "shop/t-1", "message": "1", "quote": "我喜欢喝绿茶"}
_STORED = {
    "id": _ID,
    "content": "The user likes green tea",
    "category": "preference",
    "confidence": 0.9,
    "createdAt": _AT,
    "source": "shop/t-1",
    "evidence": [_QUOTE],
}
_FACT = {**_STORED, "status": "active", "lastUsedAt": _LATER}
_ARCHIVED = {
    **_STORED,
    "id": _OTHER,
    "content": "The user likes coffee",
    "archivedAt": _AT,
    "archiveReason": "replaced",
    "replacedBy": _ID,
    "status": "superseded",
    "lastUsedAt": None,
}
_DOUBTED = {
    **_STORED,
    "content": "The user may order tea",
    "doubtfulWhy": "authority",
    "doubtfulAt": _AT,
}
_SECTIONS = {
    "user": {"workContext": {"summary": "Works as a nurse in Porto.", "updatedAt": _AT}},
    "history": {},
}
_DOCUMENT = {
    "version": "1.0",
    "userId": "ana",
    "agentName": "",
    "revision": 7,
    "lastUpdated": _AT,
    **_SECTIONS,
    "facts": [_STORED],
    "archive": [],
}
_EXPORTED = {"format": "memd", "version": 1, "memories": [_DOCUMENT]}
_BLOCK = {"text": "<memory>\n- [preference | 0.90] The user likes green tea\n</memory>", "version": "5d41402abc4b2a76"}
_PROFILE = {
    "profile": {
        "profession": {"value": "nurse", "updatedAt": _AT, "source": "manual", "factIds": []},
    }
}
_LETTER = {
    "id": _LETTER_ID,
    "code": "bad_reply",
    "error": "the reply was no update, twice",
    "died_at": _AT,
    "attempts": 2,
    "thread_id": "shop/t-1",
    "user_id": "ana",
    "agent_name": "",
    "origin": None,
}
_USED = {
    "model": "claude-haiku-5-5",
    "calls": 12,
    "batch_calls": 0,
    "input_tokens": 20_400,
    "output_tokens": 2_100,
    "cache_read_tokens": 9_000,
    "cache_write_tokens": 900,
    "usd": 0.0312,
}
_STATUS: Mapping[str, Any] = {
    "pending": 3, "due": 1, "parked": 0, "batched": 0, "batches": 0, "rationed": 0, "rationed_until": None,
    "claimed": 1, "dead": 0, "raw": {"memd:in": 0}, "raw_letters": {}, "unread": [],
    "oldest_waiting_s": 12.5, "workers": [], "waiting_parts": [], "paused": [], "discarded": {},
    "pushes": 120, "stored": 98, "skipped": 18, "dead_so_far": 0,
    "by_reason": {"nothing_new": 18}, "dropped": {}, "cut": {}, "refused": {}, "redacted": {}, "not_kept": {},
    "mended": {}, "facts": {"added": 41}, "events_lost": 0,
    "durations": {"commit": {"counts": [[0.005, 0], [0.01, 98]], "total": 98, "seconds": 0.71}},
    "models": {
        "claude-haiku-5-5": {"calls": 13, "batch_calls": 0, "tokens": {"input": 20_400}, "failures": {"timeout": 1}},
    },
    "usage": {"model_calls": 12}, "server": {"version": "9.1.0"}, "wire": 4,
}  # fmt: skip

_RECALL = {
    "inject": Example({**_ANA, "query": "What do I drink?"}, response=_BLOCK),
    "injectFor": Example(request={**_ANA, "query": "What do I drink?", "max_tokens": 500}, response=_BLOCK),
    "search": Example(
        request={**_ANA, "query": "tea", "limit": 5},
        response={"found": [{"fact": _FACT, "score": 0.81, "kind": "fact", "pending": False, "agent_name": ""}]},
    ),
    "memory": Example({**_ANA, "at": "2026-03-01"}, response={
        **{name: value for name, value in _DOCUMENT.items() if name not in ("revision", "archive")},
        "asOf": "2026-03-01", "missing": ["1 fact was removed since: the text is gone"],
    }),
}  # fmt: skip

_PUSHES = {
    "push": Example(
        request={
            **_ANA,
            "thread_id": "t-1",
            "messages": [{"id": "1", "role": "user", "content": "I live in Porto. 我喜欢喝绿茶。"}],
        },
        response={
            "status": "queued",
            "id": _RECEIPT,
            "due_at": _AT,
            "reason": None,
            "messages": 1,
            "dropped": {},
            "cut": {},
            "wire": 4,
        },
    ),
    "receipt": Example(
        {"receipt_id": _RECEIPT, **_ANA},
        response={
            "state": "stored",
            "reason": None,
            "due_at": None,
            "fact_ids": [_ID],
            "counts": {"stored": 1},
            "refused": {},
            "not_kept": {},
            "project": {},
        },
    ),
    "pending": Example(_ANA, response={
        "keys": [{
            "user_id": "ana", "agent_name": "", "thread_id": "t-1", "state": "waiting", "turns": 1, "tokens": 14,
            "first_push": _AT, "due_at": _AT, "due_in_s": 21.5, "claimed_by": None,
        }],
        "next": "",
    }),
    "flush": Example(request={**_ANA, "thread_id": "t-1"}, response={
        "counts": {"waiting": 1}, "timed_out": False, "rationed": 0, "rationed_until": None,
    }),
}  # fmt: skip

_FACTS = {
    "facts": Example({**_ANA, "category": "preference"}, response={"facts": [_FACT], "next": ""}),
    "why": Example(_OF_ANA, response={
        "id": _ID, "state": "active", "content": _STORED["content"], "category": "preference", "confidence": 0.9,
        "evidence": [_QUOTE], "status": "active", "lastUsedAt": _LATER, "model": "claude-haiku-5-5",
        "replaced": [{"id": _OTHER, "content": "The user likes coffee"}], "earlier": [],
    }),
    "archive": Example({**_ANA, "reason": "replaced"}, response={"facts": [_ARCHIVED], "next": ""}),
    "addNote": Example(request={**_ANA, "content": "The user prefers short answers."}, response=_ONE),
    "addFact": Example(
        request={**_ANA, "content": "The user is allergic to nuts.", "category": "constraint"}, response=_ONE
    ),
    "editFact": Example({"fact_id": _ID}, {**_ANA, "content": "The user likes oolong tea"}, _ONE),
    "removeFact": Example(_OF_ANA),
    "profile": Example(_ANA, response=_PROFILE),
    "setProfile": Example(
        request={**_ANA, "field": "profession", "value": "nurse"}, response={"field": "profession"}
    ),
    "unsetProfile": Example({**_ANA, "field": "profession"}),
    "doubtful": Example(_ANA, response={"facts": [_DOUBTED]}),
    "approveFact": Example({"fact_id": _ID}, _ANA, _ONE),
    "dropFact": Example({"fact_id": _ID}, _ANA),
    "withheld": Example(_ANA, response={
        "withheld": [{
            "fact": _ID, "wanted": "forgotten", "why": "too_many_forgotten", "at": _AT, "source": "shop/t-1",
            "content": "The user likes green tea",
        }],
    }),
    "restoreFact": Example({"fact_id": _ID}, _ANA, _ONE),
}  # fmt: skip

_PROJECTS = {
    "projects": Example(_ANA, response={
        "projects": [{
            "project_id": "apollo", "app": "shop", "role": "owner", "members": 2, "facts": 5, "changed_at": _AT,
        }],
    }),
    "makeProject": Example(request=_APOLLO, response={"id": "apollo"}),
    "closeProject": Example(_APOLLO),
    "projectMembers": Example(_APOLLO, response={"members": [{"user_id": "ana", "role": "owner"}]}),
    "setProjectMember": Example(
        request={**_APOLLO, "member": "ben", "role": "editor"}, response={"user_id": "ben", "role": "editor"}
    ),
    "removeProjectMember": Example({**_APOLLO, "member": "ben"}),
    "projectProfile": Example(_APOLLO, response={
        "profile": {"projectGoal": {"value": "To ship in May.", "updatedAt": _AT, "source": "manual", "factIds": []}},
    }),
    "setProjectProfile": Example(
        request={**_APOLLO, "field": "project_goal", "value": "To ship in May."}, response={"field": "project_goal"}
    ),
    "unsetProjectProfile": Example({**_APOLLO, "field": "project_goal"}),
    "projectTimeline": Example({**_APOLLO, "since": "2026-01-01"}, response={
        "timeline": [{
            "at": _AT, "category": "decision", "content": "The API is frozen.", "reason": "a release", "by": "ben",
            "fact_id": _ID, "ended": "",
        }],
        "next": "",
    }),
    "projectFacts": Example(_APOLLO, response={
        "facts": [{**_FACT, "content": "The project uses Kafka."}], "next": "",
    }),
    "addProjectFact": Example(
        request={**_APOLLO, "content": "The project uses Kafka.", "category": "knowledge"}, response=_ONE
    ),
    "whyProjectFact": Example(_OF_APOLLO, response={
        "fact": {**_FACT, "content": "The project uses Kafka."},
        "evidence": [{"by": "ben", "quote": "we use Kafka", "saidAt": _AT}], "disputes": [], "replaced": [],
    }),
    "editProjectFact": Example({"fact_id": _ID}, {**_APOLLO, "visibility": "public"}, _ONE),
    "removeProjectFact": Example(_OF_APOLLO),
    "publishFact": Example({"fact_id": _ID}, _APOLLO, _ONE),
    "hideFact": Example({"fact_id": _ID}, _APOLLO, _ONE),
    "decideDispute": Example({"fact_id": _ID}, _APOLLO, _ONE),
}  # fmt: skip

_USERS = {
    "users": Example({"find": "an", "limit": 50}, response={
        "users": [{"user_id": "ana", "agents": [], "facts": 12, "pending": 1, "changed_at": _AT}], "next": "",
    }),
    "export": Example(_ANA, response={**_EXPORTED, "exportedAt": _LATER, "userId": "ana", "tasks": [], "sessions": []}),
    "import": Example(request={**_ANA, "dry_run": True, "document": _EXPORTED}, response={
        "dry_run": True, "format": "memd", "tasks": [], "sessions": 0,
        "threads": 0, "messages": 0, "tokens": 0, "notes": [],
        "memories": [{
            "agent_name": "", "added": [_ID], "contents": [_STORED["content"]], "known": 0, "summaries": 1,
            "archived": 0, "refused": {}, "changed": True, "turns": 0,
        }],
    }),
    "forget": Example(request={**_ANA, "dry_run": True}, response={
        "dry_run": True, "pushes": 1, "dead": 0, "documents": 1, "files": 4, "messages": 31, "complete": True,
        "unreachable": ["backups"], "known": True,
    }),
    "audit": Example({**_ANA, "rule": "stale"}, response={
        "facts": 12, "counts": {"stale": 1}, "next": "",
        "findings": [{
            "rule": "stale", "place": "facts[3]", "fact_id": _ID, "detail": "valid until 2026-02-01",
            "text": "The user is on holiday",
        }],
    }),
}  # fmt: skip

_DEAD = {
    "dead": Example({**_ANA, "code": "bad_reply"}, response={
        "letters": [_LETTER], "next": "", "total": 1, "codes": {"bad_reply": 1}, "looked_at": 1,
    }),
    "deadLetter": Example({"letter_id": _LETTER_ID}, response={
        **_LETTER, "messages": [{"role": "user", "content": "I live in Porto.", "id": "1"}], "raw": None,
    }),
    "retryDead": Example(request={"ids": [_LETTER_ID]}, response={"retried": 1, "stay": 0}),
    "dropDead": Example(request={**_ANA, "code": "bad_reply"}, response={"dropped": 1}),
}  # fmt: skip

_FIGURES = {
    "status": Example(response=_STATUS),
    "cost": Example({"days": 1}, response={
        "day": "2026-03-01", "today": [_USED], "total": [_USED], "budgets": {},
        "days": [{"day": "2026-03-01", "models": [_USED], "facts": 9, "usd": 0.0312, "usd_per_fact": 0.003467}],
    }),
    "hours": Example(response={
        "hours": [{
            "start": "2026-03-01T09:00:00Z", "pushes": 12, "stored": 9, "skipped": 2, "dead": 0, "facts": 4,
            "model_calls": 3, "tokens": 5_200, "pending": 1, "most_pending": 4,
        }],
    }),
    "health": Example(response={"status": "ok", "inbox": "ok"}),
    "ready": Example(response={"status": "ok", "inbox": "ok", "store": "ok"}),
    "openapi": Example(response={"openapi": "3.1.0", "info": {"title": "memd"}, "paths": {}}),
}  # fmt: skip

EXAMPLES: Mapping[str, Example] = {
    **_RECALL, **_PUSHES, **_FACTS, **_PROJECTS, **_USERS, **_DEAD, **_FIGURES,
}  # fmt: skip
"""The examples by the name of their operation. `metrics` and `docs` have none: they are no JSON."""
