"""A TCP proxy in front of the real server, which fails like a network."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from types import TracebackType
from urllib.parse import unquote, urlsplit

CHUNK = 65_536


class Proxy:
    """Passes commands on to a server and their replies back, apart from the faults that are set.

    `delay_s`: added to the way of each command. `silent`: nothing passes in either direction and nothing is closed;
    held bytes pass when it ends. `answer`: the reply to every command in place of the server's, in the bytes of the
    protocol. `cut` resets all connections, `drop_replies` those whose command the server has executed.
    """

    def __init__(self, url: str) -> None:
        """`url`: the real server, on a socket or on TCP."""
        self.delay_s = 0.0
        self.answer: bytes | None = None
        self.commands: Counter[str] = Counter()
        """The count of each command; calls of functions count under the function's name."""

        self.losing: Counter[str] = Counter()
        self.loop = asyncio.new_event_loop()
        self.passing = asyncio.Event()
        self.passing.set()
        self._target = urlsplit(url)
        self._thread = threading.Thread(target=self.loop.run_forever, name="proxy", daemon=True)
        self._links: dict[asyncio.Task[None], _Link] = {}

    def __enter__(self) -> Proxy:
        self._thread.start()
        start = asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(start, self.loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def silent(self) -> bool:
        """Drop everything that is sent, as a network that loses packets does."""
        return not self.passing.is_set()

    @silent.setter
    def silent(self, silent: bool) -> None:
        self.loop.call_soon_threadsafe(self.passing.clear if silent else self.passing.set)

    def cut(self) -> None:
        """Reset all connections."""
        self.loop.call_soon_threadsafe(self._abort)

    def drop_replies(self, name: str, times: int = 1) -> None:
        """Let the server execute the next commands of this name, then reset before their replies."""
        self.losing[name] += times

    def _abort(self) -> None:
        for link in self._links.values():
            link.abort()

    async def _stop(self) -> None:
        self._server.close()
        for task in self._links:
            task.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        link = self._links[task] = _Link(self, reader, writer)
        try:
            await link.run(self._target.scheme, unquote(self._target.path), self._target.hostname, self._target.port)
        except (OSError, asyncio.CancelledError):
            return  # the server is away, or the test is over
        finally:
            link.abort()
            del self._links[task]


class _Link:
    """A client's connection and its connection to the server."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writers = [writer]
        self._waiting: asyncio.Queue[tuple[float, bytes, str]] = asyncio.Queue()
        self._losing = False

    async def run(self, scheme: str, path: str, host: str | None, port: int | None) -> None:
        """Pass bytes in both directions until one side ends."""
        replies, server = await (
            asyncio.open_unix_connection(path) if scheme == "unix" else asyncio.open_connection(host, port)
        )
        self._writers.append(server)
        ways = [asyncio.ensure_future(way) for way in (self._read(), self._pass_on(server), self._reply(replies))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    def abort(self) -> None:
        """Reset both sides."""
        for writer in self._writers:
            writer.transport.abort()

    async def _read(self) -> None:
        while True:
            command, name = await _command(self._reader)
            self._proxy.commands[name] += 1
            self._waiting.put_nowait((self._proxy.loop.time() + self._proxy.delay_s, command, name))

    async def _pass_on(self, server: asyncio.StreamWriter) -> None:
        while True:
            at, command, name = await self._waiting.get()
            await asyncio.sleep(at - self._proxy.loop.time())
            await self._proxy.passing.wait()
            if self._proxy.answer is not None:
                self._writers[0].write(self._proxy.answer)
                continue
            if self._proxy.losing[name]:
                self._proxy.losing[name] -= 1
                self._losing = True
            server.write(command)
            await server.drain()

    async def _reply(self, replies: asyncio.StreamReader) -> None:
        while data := await replies.read(CHUNK):
            await self._proxy.passing.wait()
            if self._losing:
                return
            self._writers[0].write(data)
            await self._writers[0].drain()


async def _command(reader: asyncio.StreamReader) -> tuple[bytes, str]:
    """The bytes of the next command and its name; for a call of a function, the function's name."""
    head = await reader.readuntil(b"\r\n")
    whole, parts = [head], []
    for _ in range(int(head[1:])):
        size = await reader.readuntil(b"\r\n")
        parts.append(await reader.readexactly(int(size[1:]) + 2))
        whole += [size, parts[-1]]
    words = [part[:-2].decode(errors="replace") for part in parts[:2]]
    name = words[1] if words[0].upper() == "FCALL" else words[0].upper()
    return b"".join(whole), name
