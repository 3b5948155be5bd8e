"""Several hosts, each with its own network and file system, one server, one PostgreSQL, one model: `make bench-scale`.

All hosts share the cores of one machine. With a model of two seconds and 16 concurrent calls a host can do 8 contexts a
second, so what a host adds is seen as long as cores are left. With a model that replies at once the cores are the
limit, and more hosts add nothing. Then a host is cut off in the middle of its work, and healed; and what one host
writes is read at once from another one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.database import Missing
from benchmarks.figures import Figure, Measurement, Plot, Skip, at_least, at_most
from benchmarks.fleet import Cpu, Fleet, fleet
from benchmarks.hosts import Hosts, NoHosts, hosts
from benchmarks.load import TOWNS
from benchmarks.sizes import Size
from benchmarks.timing import median, percentile, spread, wait_until

AREA = "scale"
HOSTS = (1, 2, 4)
MODEL_S = 2.0
CONCURRENCY = 16
AT_ONCE = 400
"""Contexts of a drain with a model that replies at once."""

LEASE_S = 15
WAVES = 4
ROUNDS = 2
FACTS = 100


def measure(size: Size) -> Iterator[Measurement]:
    """Drains by number of hosts; a host that is cut off; reads of what another host has written."""
    small = size.name == "tiny"
    counts = HOSTS[:2] if small else HOSTS
    try:
        with hosts(counts[-1]) as there:
            with fleet(there, CONCURRENCY, MODEL_S, drain__lease_s=LEASE_S, drain__linger_s=10) as found:
                yield from _drains(found, counts, 1 if small else WAVES, 1 if small else ROUNDS)
                yield from _cut_off(found, 3 if small else WAVES)
                yield from _across(found, FACTS // 10 if small else FACTS)
                yield from _through_workers(found)
            if not small:
                yield from _at_once(there, counts)
    except (NoHosts, Missing) as error:
        yield Skip(AREA, "several hosts", str(error))


def _drains(found: Fleet, counts: tuple[int, ...], waves: int, rounds: int) -> Iterator[Measurement]:
    """With a model of two seconds, what the calls allow is the limit: every call in flight all the time."""
    lines: dict[str, list[tuple[float, float]]] = {"memd": [], "what the calls allow": []}
    for count in counts:
        found.employ(count)
        _drain(found, count * CONCURRENCY)  # all have been woken once, and have their connections
        before, contexts = found.cpu(), count * CONCURRENCY * waves
        drains = [_drain(found, contexts) for _ in range(rounds)]
        cost = _cost(before, found.cpu(), contexts * rounds)
        kept = found.kept(range(drains[0][1].start, drains[-1][1].stop))
        rates = [rate for rate, _ in drains]
        most = count * CONCURRENCY / MODEL_S
        lines["memd"].append((count, median(rates)))
        lines["what the calls allow"].append((count, most))
        yield Figure(
            AREA, f"{_hosts(count)}, {CONCURRENCY} calls each, model {MODEL_S:g} s", median(rates), "/s",
            peer="what the calls allow", peer_value=most, target=at_least(0.8, of="ratio"), spread=spread(rates),
            note=f"{contexts * rounds} contexts, {kept.lost} lost, {kept.twice} twice; {cost}",
        )  # fmt: skip
    yield Plot("scaling", "Contexts a second by hosts, model of two seconds", "hosts", "contexts/s", lines)


def _at_once(there: Hosts, counts: tuple[int, ...]) -> Iterator[Measurement]:
    """With a model that replies at once, the cores that all hosts share are the limit."""
    with fleet(there, CONCURRENCY, 0.0) as found:
        for count in counts:
            found.employ(count)
            _drain(found, count * CONCURRENCY)
            before = found.cpu()
            rates = [_drain(found, AT_ONCE)[0] for _ in range(ROUNDS)]
            yield Figure(
                AREA, f"{_hosts(count)}, {CONCURRENCY} calls each, model 0 s: the shared cores are the limit",
                median(rates), "/s", spread=spread(rates), note=_cost(before, found.cpu(), AT_ONCE * ROUNDS),
            )  # fmt: skip


def _hosts(count: int) -> str:
    return f"{count} host" + "s" * (count > 1)


def _drain(found: Fleet, count: int) -> tuple[float, range]:
    """Push, flush, and wait for the last ack; contexts a second from the flush on."""
    numbers = found.push(count)
    started = time.perf_counter()
    found.flush()
    found.finish()
    return count / (time.perf_counter() - started), numbers


def _cost(before: Cpu, after: Cpu, contexts: int) -> str:
    """The CPU milliseconds of a context, by part."""
    each = after.since(before, contexts)
    return (
        f"CPU of a context: workers {each.workers:.1f} ms, scheduler {each.scheduler:.1f} ms, "
        f"server {each.server:.1f} ms, PostgreSQL {each.postgres:.1f} ms"
    )


def _cut_off(found: Fleet, waves: int) -> Iterator[Measurement]:
    """The first host's cable is pulled while it has calls in flight, for longer than a lease, and put back."""
    host, contexts = found.at_work[0], len(found.at_work) * CONCURRENCY * waves
    before = found.stored()
    numbers = found.push(contexts)
    found.flush()
    wait_until(lambda: found.stored() > before, "the first contexts are stored", LEASE_S, 0.005)
    host.cut_off()
    started = time.perf_counter()
    found.finish()
    ended_s = time.perf_counter() - started
    wait_until(lambda: time.perf_counter() - started > LEASE_S, "a lease has run out", LEASE_S + 1, 0.1)
    host.heal()
    ready_s = wait_until(lambda: found.is_ready(host), "the host serves again", 120, 0.1)
    more = found.push(len(found.at_work) * CONCURRENCY)
    found.flush()
    found.finish()
    kept = found.kept(range(numbers.start, more.stop))
    note = f"of {more.stop - numbers.start}; all ended {ended_s:.1f} s after the cut; the lease is {LEASE_S} s"
    yield Figure(AREA, "a host cut off at work and healed: lost", kept.lost, "contexts", target=at_most(0), note=note)
    yield Figure(AREA, "a host cut off at work and healed: taken in twice", kept.twice, "contexts", target=at_most(0))
    yield Figure(AREA, "until the healed host serves again", ready_s, "s")


def _across(found: Fleet, facts: int) -> Iterator[Measurement]:
    """A person adds a fact at one host; the next host, whose cache is warm, is asked at once."""
    working = found.at_work
    user, stale, times = "reader", 0, []
    for number in range(facts):
        writer, reader = working[number % len(working)], working[(number + 1) % len(working)]
        fact = f"Wants note {number} of the hosts to be read at once."
        found.ask(reader, f"/v1/memory?user_id={user}")
        found.ask(writer, "/v1/facts", {"user_id": user, "content": fact})
        started = time.perf_counter()
        answer = found.ask(reader, f"/v1/memory?user_id={user}")
        times.append(time.perf_counter() - started)
        stale += all(each["content"] != fact for each in answer["facts"])
    yield Figure(
        AREA, f"{facts} facts added at a host and read at another one: not seen", stale, "reads", target=at_most(0),
        note=f"p50 of the read {median(times) * 1e3:.1f} ms, p99 {percentile(times, 0.99) * 1e3:.1f} ms",
    )  # fmt: skip


def _through_workers(found: Fleet) -> Iterator[Measurement]:
    """A push at one host, waited for at the next, injected at the one after."""
    working, stale = found.at_work, 0
    users = [f"writer-{number}" for number in range(len(working) * 2)]
    for number, user in enumerate(users):
        found.push_at(working[number % len(working)], user, f"I live in {TOWNS[number % len(TOWNS)]}.")
    for number, user in enumerate(users):
        found.ask(working[(number + 1) % len(working)], "/v1/flush", {"user_id": user, "wait": True})
        block = found.ask(working[(number + 2) % len(working)], f"/v1/inject?user_id={user}")["text"]
        stale += TOWNS[number % len(TOWNS)] not in block
    yield Figure(
        AREA, f"{len(users)} pushes at a host, flushed at the next, injected at the one after: not seen", stale,
        "reads", target=at_most(0),
    )  # fmt: skip
