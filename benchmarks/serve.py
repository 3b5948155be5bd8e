"""Inject over HTTP: requests a second, and the time of each.

One `memd serve` on one core, one client process on another (where the machine has two), keep-alive connections, a warm
cache: users with 60 facts each, read in turn. Two runs: at a fixed rate, where a request's time counts from its due
moment (so that a stall shows in all requests that waited behind it), and at full speed.

    .venv/bin/python -m benchmarks.serve --seconds 10
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd import Memd, config
from memd.context import Bucket
from memd.memory.document import empty_document
from memd.memory.store.json_store import open_store

USERS, FACTS = 100, 60
TARGET_RATE, TARGET_P99_MS = 1_000, 20.0


def main() -> None:
    options = _options()
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        block = _fill(Path(folder))
        port = _free_port()
        with _served(Path(folder), port, cores[0], tokens=not options.open) as (process, token):
            print(
                f"{USERS} users, {FACTS} facts each, blocks of {block} bytes, {options.connections} connections, "
                f"server on core {cores[0]}, client on core {cores[-1]}, load {os.getloadavg()[0]:.1f}"
            )
            for rate in (options.rate, None):
                before = _cpu_s(process.pid)
                times, seconds = _measured(port, token, options, rate, cores[-1])
                cpu_us = (_cpu_s(process.pid) - before) / len(times) * 1e6
                _print(rate, times, seconds, cpu_us)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=TARGET_RATE, help="requests a second of the first run")
    parser.add_argument("--open", action="store_true", help="without tokens")
    return parser.parse_args()


def _fill(folder: Path) -> int:
    """Write the memories; returns the bytes of one block."""
    settings = config.load(environ={}, flags={"data_dir": str(folder)}, use_file=False).settings
    store = open_store(settings)
    for number in range(USERS):
        bucket = Bucket(f"user-{number}")
        document = empty_document(bucket)
        document["facts"] = [
            {
                "id": f"fact_{place:08x}",
                "content": f"Prefers the way of doing things that is number {place} of user {number}; 喜欢喝绿茶。",
                "category": "preference",
                "confidence": 0.7 + place % 30 / 100,
                "createdAt": "2026-11-21T09:00:00Z",
                "source": "thread-1",
            }
            for place in range(FACTS)
        ]
        document["revision"] = 1
        store.commit(bucket, store.load(bucket), document, lambda: True)
    return len(Memd(settings).inject("user-0").encode())


@contextmanager
def _served(folder: Path, port: int, core: int, *, tokens: bool) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MEMD_")}
    env |= {"MEMD_DATA_DIR": str(folder), "MEMD_HTTP__PORT": str(port), "MEMD_LOG__LEVEL": "warning"}
    token = ""
    if tokens:
        env["MEMD_HTTP__TOKENS"] = str(folder / "tokens.json")
        words = ["token", "add", "--app", "bench", "--prefix", "user-", "--json"]
        made = subprocess.run([sys.executable, "-m", "memd", *words], env=env, capture_output=True, check=True)
        token = json.loads(made.stdout)["token"]
    process = subprocess.Popen([sys.executable, "-m", "memd", "serve"], env=env)
    os.sched_setaffinity(process.pid, {core})
    try:
        _wait_for(port)
        yield process, token
    finally:
        process.terminate()
        process.wait(15)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _wait_for(port: int) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("the server did not start")


def _measured(
    port: int, token: str, options: argparse.Namespace, rate: int | None, core: int
) -> tuple[list[float], float]:
    """The seconds of each request and of all together, measured in a separate process."""
    here, there = multiprocessing.Pipe(duplex=False)
    client = multiprocessing.get_context("fork").Process(
        target=_client, args=(there, port, token, options.connections, options.seconds, rate, core)
    )
    client.start()
    there.close()  # so that a dead client shows as an end of file
    found: tuple[list[float], float] = here.recv()
    client.join()
    return found


def _client(out: object, port: int, token: str, connections: int, seconds: float, rate: int | None, core: int) -> None:
    os.sched_setaffinity(0, {core})
    found = asyncio.run(_all(port, token, connections, seconds, rate))
    out.send(found)  # type: ignore[attr-defined]  # a Connection, which multiprocessing does not name


async def _all(port: int, token: str, connections: int, seconds: float, rate: int | None) -> tuple[list[float], float]:
    requests = [_request(port, token, number) for number in range(USERS)]
    times: list[float] = []
    for request in requests:  # warm
        await _Line(port).ask(request)
    lines = [_Line(port) for _ in range(connections)]
    began = time.perf_counter()
    jobs = [_keep_asking(line, requests[n:] + requests[:n], began + seconds, rate and rate / connections, n, times)
            for n, line in enumerate(lines)]  # fmt: skip
    await asyncio.gather(*jobs)
    return times, time.perf_counter() - began


async def _keep_asking(
    line: _Line, requests: list[bytes], until: float, rate: float | None, number: int, times: list[float]
) -> None:
    due = time.perf_counter() + (number / 1000 if rate else 0)
    asked = 0
    while (now := time.perf_counter()) < until:
        if rate:
            await asyncio.sleep(max(0.0, due - now))
        start = due if rate else now
        await line.ask(requests[asked % len(requests)])
        times.append(time.perf_counter() - start)
        asked += 1
        due += 1 / rate if rate else 0


class _Line:
    """A keep-alive connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> None:
        self._streams = self._streams or await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200"), head
        length = head.index(b"content-length:") + 15
        await reader.readexactly(int(head[length : head.index(b"\r", length)]))


def _request(port: int, token: str, number: int) -> bytes:
    lines = [f"GET /v1/inject?user_id=user-{number} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Accept: application/json"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _print(rate: int | None, times: list[float], seconds: float, cpu_us: float) -> None:
    times.sort()
    p50, p99 = (times[int(len(times) * share)] * 1000 for share in (0.5, 0.99))
    name = f"{rate:,} requests a second" if rate else "as fast as it goes"
    print(
        f"{name:<22} {len(times) / seconds:>7,.0f}/s   p50 {p50:6.2f} ms   p99 {p99:6.2f} ms   "
        f"longest {times[-1] * 1000:6.1f} ms   server CPU {cpu_us:4.0f} µs a request"
    )
    if rate == TARGET_RATE:
        met = len(times) / seconds >= 0.99 * rate and p99 <= TARGET_P99_MS
        print(f"{'':<22} target {TARGET_RATE:,}/s with p99 ≤ {TARGET_P99_MS:g} ms: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
