"""The Message Batches API of the model server: create, retrieve, results, cancel, delete."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from memd.testing.dialects import error_body
from memd.testing.http import ModelRequest

BATCHES = "/v1/messages/batches"
DAY = timedelta(days=1)

Response = tuple[int, bytes, str]
JSON, JSON_LINES = "application/json", "application/x-jsonl"
COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")


@dataclass
class Batch:
    """One batch: its requests by id, and the lines of its results once it has ended."""

    id: str
    requests: dict[str, dict[str, Any]]
    made: float
    created_at: datetime
    canceled: bool = False
    results: list[dict[str, Any]] | None = None


@dataclass
class BatchDesk:
    """The batches of the model server. A test can hold and delay them, and make them expire, fail or lose results.

    `delay`: seconds until a batch ends. `made`: all batches so far, deleted ones included. `polls`: how often a
    batch's state was requested. `deleted`: the ids of deleted batches.
    """

    answer: Callable[[dict[str, Any]], tuple[int, bytes]]
    """Returns status and body for the params of a request."""

    delay: float = 0.0
    made: list[Batch] = field(default_factory=list)
    polls: int = 0
    deleted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._batches: dict[str, Batch] = {}
        self._lock = threading.Lock()
        self._held = False
        self._expiring = 0
        self._losing = 0
        self._failing: list[tuple[str, int]] = []

    @property
    def requests(self) -> int:
        """The number of requests in all batches so far."""
        with self._lock:
            return sum(len(batch.requests) for batch in self.made)

    def hold(self) -> None:
        """Keep all batches in progress until `go_on`."""
        self._held = True

    def go_on(self) -> None:
        """Let batches end again."""
        self._held = False

    def expire(self, count: int = 1) -> None:
        """Let the next `count` requests expire unanswered when their batch ends."""
        self._expiring = count

    def lose_lines(self, count: int = 1) -> None:
        """Leave the next `count` results out."""
        self._losing = count

    def fail(self, verb: str, status: int) -> None:
        """Answer the next `create`, `retrieve`, `results`, `cancel` or `delete` with an error of this status."""
        self._failing.append((verb, status))

    def forget(self) -> None:
        """Forget all batches."""
        with self._lock:
            self._batches.clear()

    def handle(self, request: ModelRequest, base_url: str) -> Response:
        """Status, body and content type for one request of the API."""
        with self._lock:
            name, _, action = request.path.removeprefix(BATCHES).strip("/").partition("/")
            verb = _verb(request.method, name, action)
            for failing in self._failing:
                if failing[0] == verb:
                    self._failing.remove(failing)
                    return failing[1], error_body(failing[1], "scripted"), JSON
            if verb == "create":
                return self._create(request, base_url)
            batch = self._batches.get(name)
            if batch is None or not verb:
                return 404, error_body(404, "no such batch"), JSON
            return self._on(batch, verb, base_url)

    def _create(self, request: ModelRequest, base_url: str) -> Response:
        rows = json.loads(request.body)["requests"]
        names = [row["custom_id"] for row in rows]
        if len(set(names)) < len(names) or not all(0 < len(name) <= 64 for name in names):
            return 400, error_body(400, "custom_id must be unique and have at most 64 characters"), JSON
        batch = Batch(
            f"msgbatch_{len(self.made)}",
            {row["custom_id"]: row["params"] for row in rows},
            time.monotonic(),
            datetime.now(UTC),
        )
        self.made.append(batch)
        self._batches[batch.id] = batch
        return 200, _described(batch, base_url), JSON

    def _on(self, batch: Batch, verb: str, base_url: str) -> Response:
        if verb == "retrieve":
            self.polls += 1
        if verb == "cancel":
            batch.canceled = True
        if batch.results is None and not self._held and time.monotonic() - batch.made >= self.delay:
            batch.results = [self._line(batch, name) for name in reversed(batch.requests)]
            lost, self._losing = self._losing, 0
            batch.results = batch.results[lost:]
        if verb == "results":
            if batch.results is None:
                return 404, error_body(404, "the batch has not ended"), JSON
            return 200, b"".join(json.dumps(line).encode() + b"\n" for line in batch.results), JSON_LINES
        if verb == "delete":
            if batch.results is None:
                return 400, error_body(400, "the batch has not ended"), JSON
            self.deleted.append(batch.id)
            del self._batches[batch.id]
            return 200, json.dumps({"id": batch.id, "type": "message_batch_deleted"}).encode(), JSON
        return 200, _described(batch, base_url), JSON

    def _line(self, batch: Batch, name: str) -> dict[str, Any]:
        """The line with the result of one request."""
        if batch.canceled:
            result: dict[str, Any] = {"type": "canceled"}
        elif self._expiring:
            self._expiring -= 1
            result = {"type": "expired"}
        else:
            status, body = self.answer(batch.requests[name])
            answer = json.loads(body)
            result = {"type": "succeeded", "message": answer} if status == 200 else {"type": "errored", "error": answer}
        return {"custom_id": name, "result": result}


def _verb(method: str, name: str, action: str) -> str:
    if not name:
        return "create" if method == "POST" else ""
    verbs = {("GET", ""): "retrieve", ("DELETE", ""): "delete", ("GET", "results"): "results"}
    return verbs.get((method, action), "cancel" if (method, action) == ("POST", "cancel") else "")


def _described(batch: Batch, base_url: str) -> bytes:
    kinds = [line["result"]["type"] for line in batch.results or ()]
    counts = {kind: kinds.count(kind) for kind in COUNTS}
    ended = batch.results is not None
    return json.dumps(
        {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "canceling" if batch.canceled else "in_progress",
            "request_counts": counts if ended else {**counts, "processing": len(batch.requests)},
            "created_at": batch.created_at.isoformat(),
            "expires_at": (batch.created_at + DAY).isoformat(),
            "ended_at": datetime.now(UTC).isoformat() if ended else None,
            "results_url": f"{base_url}{BATCHES}/{batch.id}/results" if ended else None,
            "cancel_initiated_at": None,
            "archived_at": None,
        }
    ).encode()
