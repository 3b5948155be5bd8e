"""A TCP proxy before PostgreSQL that cuts connections at a COMMIT."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Literal

COMMIT = b"COMMIT\x00"
CHUNK = 65_536


class PostgresProxy:
    """Passes bytes on. `cut`: the next COMMIT is cut off before it reaches the server, or before its answer returns.

    `held`: a COMMIT waits until it is set. `shut`: no new connection is let through. `commits`: COMMITs seen.
    """

    def __init__(self, port: int) -> None:
        """`port`: the server's, on the loopback."""
        self._target = port
        self.cut: Literal["", "before", "after"] = ""
        self.shuts_then = False
        self.shut = False
        self.held: threading.Event | None = None
        self.commits = 0

    def __enter__(self) -> PostgresProxy:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut_all()

    def url(self, name: str) -> str:
        """The address for clients."""
        return f"postgresql://postgres@127.0.0.1:{self._listener.getsockname()[1]}/{name}"

    def cut_all(self) -> None:
        """End every connection."""
        for pair in self._pairs:
            _end(*pair)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.shut:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._target))
                self._pairs.append((client, server))
                state = {"cut": False}
                threading.Thread(target=self._forward, args=(client, server, state), daemon=True).start()
                threading.Thread(target=self._back, args=(client, server, state), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket, state: dict[str, bool]) -> None:
        with suppress(OSError):
            while data := client.recv(CHUNK):
                if COMMIT in data:
                    self.commits += 1
                    if self.held is not None:
                        self.held.wait(60)
                    cut, self.cut = self.cut, ""
                    if cut:
                        self.shut = self.shuts_then
                    if cut == "before":
                        break
                    state["cut"] = cut == "after"
                server.sendall(data)
        if not state["cut"]:
            _end(client, server)

    def _back(self, client: socket.socket, server: socket.socket, state: dict[str, bool]) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK):
                if state["cut"]:  # the server has answered: it has committed
                    break
                client.sendall(data)
        _end(client, server)


def _end(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
