"""Hosts on one machine: network namespaces on a bridge for root, else the machine itself.

Each namespace has its own address, loopback and sockets. All share one file system, as workers on several machines
must share the data folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

BRIDGE = "memdbench"
NETWORK = "10.213.77"


@dataclass(frozen=True, slots=True)
class Hosts:
    """The server's address, and the prefix of each host's commands."""

    address: str
    prefixes: tuple[tuple[str, ...], ...]
    kind: str


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """This many hosts; their namespaces are removed after the block."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        yield Hosts("127.0.0.1", ((),) * count, "processes of one host (no root, no namespaces)")
        return
    with ExitStack() as stack:
        try:
            _ip("link", "add", BRIDGE, "type", "bridge")
        except subprocess.CalledProcessError:  # a kernel or a container without them
            yield Hosts("127.0.0.1", ((),) * count, "processes of one host (no network namespaces here)")
            return
        stack.callback(_ip, "link", "delete", BRIDGE)
        _ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        for number in range(count):
            _add(stack, number)
        prefixes = tuple(("ip", "netns", "exec", _name(number)) for number in range(count))
        yield Hosts(f"{NETWORK}.1", prefixes, "network namespaces on a bridge")


def _add(stack: ExitStack, number: int) -> None:
    name, outside, inside = _name(number), f"{BRIDGE}{number}", f"memdin{number}"
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "delete", name)
    _ip("link", "add", outside, "type", "veth", "peer", "name", inside)
    _ip("link", "set", inside, "netns", name)
    _ip("link", "set", outside, "master", BRIDGE, "up")
    _ip("-n", name, "addr", "add", f"{NETWORK}.{10 + number}/24", "dev", inside)
    _ip("-n", name, "link", "set", inside, "up")
    _ip("-n", name, "link", "set", "lo", "up")


def _name(number: int) -> str:
    return f"{BRIDGE}-{number}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)  # noqa: S607  (its folder differs between systems)
