"""Sessions: the time of a window and of a compaction, and the tokens of a long agent run beside other ways to send it.

The run is the same each time: 500 calls of a model that reads files with a tool and answers a user now and then. The
model that summarises is a local endpoint, whose summaries are as long as they may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.figures import Figure, Measurement, at_most
from benchmarks.load import text
from benchmarks.sizes import Size
from benchmarks.timing import percentile, turn
from memd.config import ExtractionSettings, Secret, SessionSettings
from memd.session.chat import ChatTurn, Text, ToolResult, ToolUse, said
from memd.session.compacting import Compaction, Compactor
from memd.session.outline import outline
from memd.session.pairs import paired
from memd.session.summary import MOST_CHARS
from memd.session.told import told
from memd.session.window import STRATEGIES, plan
from memd.session.writing_chats import written
from memd.testing import ModelServer

AREA = "sessions"
MESSAGES, CALLS, LAST = 1_000, 500, 20

CACHED = 0.1
"""The price of a token that the prompt cache holds, in those of another one: providers ask a tenth."""

ROUNDS = 5
"""Calls of the model for each message of the user: the last one answers, the others read a file."""

UNLIMITED = SessionSettings(max_tokens=10_000_000, compact_tokens=10_000_000)


@dataclass
class Sent:
    """The estimated tokens that a run sent. `cached`: those at the beginning that the call before had as well."""

    tokens: float = 0
    cached: float = 0
    largest: float = 0
    before: Sequence[ChatTurn] = ()

    def call(self, turns: Sequence[ChatTurn]) -> None:
        """Count one call."""
        same = 0
        for now, then in zip(turns, self.before, strict=False):
            if now != then:
                break
            same += now.cost
        whole = sum(turn.cost for turn in turns)
        self.tokens += whole / 10
        self.cached += same / 10
        self.largest = max(self.largest, whole / 10)
        self.before = turns

    @property
    def paid(self) -> float:
        """The tokens at the prices of a prompt cache."""
        return self.tokens - (1 - CACHED) * self.cached


def measure(size: Size) -> Iterator[Measurement]:
    """Only the times differ from run to run."""
    for language, chinese in (("English", 0.0), ("Chinese", 1.0)):
        yield from _times(language, chinese, max(20, size.pushes // 10))
    yield from _tokens()


def _times(language: str, chinese: float, count: int) -> Iterator[Measurement]:
    """No limit is reached, so all messages are in the window; then the plan that cuts them."""
    history = [message for number in range(MESSAGES // 2) for message in _call(number, chinese)][:MESSAGES]
    compactor = Compactor(UNLIMITED, ExtractionSettings(extractor="rules"))
    taken = turn(count, lambda _: written(compactor.compact(history).seen))
    yield Figure(
        AREA, f"window(), {MESSAGES:,} messages in {language}, p50", percentile(taken.latencies, 0.5) * 1e3, "ms",
        target=at_most(5.0),
        note=f"CPU {taken.cpu_s / taken.count * 1e3:.2g} ms; the first time {taken.latencies[0] * 1e3:.2g} ms",
    )  # fmt: skip
    shortened = turn(max(5, count // 4), lambda _: outline(history, SessionSettings().summary_tokens))
    yield Figure(
        AREA, f"the outline of {MESSAGES:,} messages in {language}, p50", percentile(shortened.latencies, 0.5) * 1e3,
        "ms", note="only without a model",
    )  # fmt: skip
    asked = turn(max(5, count // 4), lambda _: told(history, SessionSettings(), MOST_CHARS[0]))
    yield Figure(
        AREA, f"the request for a summary of {MESSAGES:,} messages in {language}, p50",
        percentile(asked.latencies, 0.5) * 1e3, "ms",
    )  # fmt: skip
    for strategy in STRATEGIES:
        settings = SessionSettings(strategy=strategy)  # type: ignore[arg-type]  # the three names
        planned = turn(count, lambda _, chosen=settings: plan(history, chosen))  # type: ignore[misc]  # bound now
        yield Figure(
            AREA, f"plan of a compaction, {strategy}, {language}, p50", percentile(planned.latencies, 0.5) * 1e3, "ms"
        )


def _tokens() -> Iterator[Measurement]:
    """What 500 calls of an agent send, the summaries with it."""
    calls = [_call(number) for number in range(CALLS)]
    whole = _run(calls, lambda history: history)
    last = _run(calls, lambda history: paired(history[-LAST:]))
    what = f"an agent run of {CALLS} calls"
    for name, sent in ((f"the last {LAST} messages", last), ("the whole history", whole)):
        yield _figure(f"{what}, {name}", sent, whole, "")
    for strategy in STRATEGIES:
        yield from _session(f"{what}, a session, {strategy}", SessionSettings(strategy=strategy), calls, whole)  # type: ignore[arg-type]  # the three names


def _session(what: str, settings: SessionSettings, calls: list[list[ChatTurn]], whole: Sent) -> Iterator[Measurement]:
    """The run with a session: the tokens of its windows and of its summaries."""
    made: list[Compaction] = []
    with ModelServer() as server:
        server.text("note " * (settings.summary_tokens * 2 // 3), times=None)
        extraction = ExtractionSettings(extractor="anthropic", base_url=server.base_url, api_key=Secret("test"))
        compactor = Compactor(settings, extraction)

        def seen(history: list[ChatTurn]) -> Sequence[ChatTurn]:
            done = compactor.compact(history)
            history[:] = done.turns
            made.append(done)
            return done.seen

        sent = _run(calls, seen)
    usages = [done.usage for done in made if done.cut]
    asked = sum(usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens for usage in usages)
    wrote = sum(usage.output_tokens for usage in usages)
    sent.tokens += asked + wrote
    yield _figure(what, sent, whole, f"{len(usages)} compactions, which read {asked:,} and wrote {wrote:,} of them")


def _figure(what: str, sent: Sent, whole: Sent, note: str) -> Figure:
    largest = f"the largest call {sent.largest:,.0f}; at a tenth of the price for cached ones {sent.paid:,.0f}"
    peer = {} if sent is whole else {"peer": "the whole history", "peer_value": whole.tokens}
    return Figure(AREA, what, sent.tokens, "tokens", note="; ".join(filter(None, (note, largest))), **peer)  # type: ignore[arg-type]  # as named


def _run(calls: list[list[ChatTurn]], seen: Callable[[list[ChatTurn]], Sequence[ChatTurn]]) -> Sent:
    """All calls of the run, with what `seen` makes of the history before each."""
    history: list[ChatTurn] = []
    sent = Sent()
    for before, *after in calls:
        history.append(before)
        sent.call(tuple(seen(history)))
        history += after
    return sent


def _call(number: int, chinese: float = 0.0) -> list[ChatTurn]:
    """What comes before one call, and the reply: a message or a result, then a call of the tool or an answer."""
    ask = said("user", f"Task {number}: {text(240, number, chinese)}")
    use = ChatTurn(
        "assistant", (Text(text(80, number + 1, chinese)), ToolUse(f"c{number}", "read_file", _path(number)))
    )
    result = ChatTurn("tool", (ToolResult(f"c{number - 1}", (Text(text(500 + 700 * (number % 7), number, chinese)),)),))
    answer = said("assistant", text(600, number + 2, chinese))
    step = number % ROUNDS
    return [ask if step == 0 else result, answer if step == ROUNDS - 1 else use]


def _path(number: int) -> dict[str, str]:
    return {"path": f"src/part_{number % 40}/module_{number}.py"}
