"""Hosts on one machine: network namespaces on a bridge, each with a host name and a file system of its own.

In a host everything is read-only except /run and /dev/shm, which are empty at first and its own. Needs root and `ip`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ground import ROOT

BRIDGE = "memdbench"
NETWORK = "10.213.77"
FOLDER = "/run/memd"

SETUP = f"""
set -e
mount --make-rprivate /
while read -r _ _ _ _ place _; do
  case $place in
    /proc|/proc/*|/sys|/sys/*|/dev|/dev/*|/run|/run/*) ;;
    *) mount -o remount,bind,ro "$place" 2>/dev/null || true ;;  # some lie under others
  esac
done </proc/self/mountinfo
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
hostname "$1"
shift
for place; do [ ! -w "$place" ] || {{ echo "$place is shared" >&2; exit 1; }}; done
mkdir -m 700 {FOLDER}
touch {FOLDER}/empty.yaml
echo ready
exec cat
"""
"""What makes a host. `cat` keeps it until its input ends."""


class NoHosts(Exception):
    """This machine cannot play several hosts. The message says why."""


@dataclass(frozen=True, slots=True)
class Host:
    """One host: its address, its data folder, the words that begin each of its commands, its cable on the bridge."""

    address: str
    folder: str
    prefix: tuple[str, ...] = ()
    cable: str = ""

    def run(self, *words: str, given: bytes = b"") -> None:
        """Run a command there, with this input. Raises CalledProcessError."""
        subprocess.run([*self.prefix, *words], input=given, check=True, capture_output=True)

    def cut_off(self) -> None:
        """Pull its cable: what is on its way is lost, and nobody is told."""
        _ip("link", "set", self.cable, "down")

    def heal(self) -> None:
        """Put the cable back."""
        _ip("link", "set", self.cable, "up")


@dataclass(frozen=True, slots=True)
class Hosts:
    """The address of the machine that has the servers, and the hosts, which reach it from this network."""

    address: str
    network: str
    each: tuple[Host, ...]


@contextmanager
def this_machine() -> Iterator[Hosts]:
    """The machine itself as the only host."""
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as folder:
        (Path(folder) / "empty.yaml").touch()
        yield Hosts("127.0.0.1", "127.0.0.0/8", (Host("127.0.0.1", folder),))


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """This many hosts; they are removed after the block. Raises NoHosts."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise NoHosts("several hosts need root and the command ip (apt-get install iproute2)")
    with ExitStack() as stack:
        stack.enter_context(_alone())
        try:
            _remove_old()
            _ip("link", "add", BRIDGE, "type", "bridge")
            stack.callback(_ip, "link", "delete", BRIDGE)
            _ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
            _ip("link", "set", BRIDGE, "up")
            made = tuple(_host(stack, number) for number in range(count))
        except subprocess.CalledProcessError as error:  # a kernel or a container without them
            raise NoHosts(f"no namespaces here: {str(error.stderr).strip()}") from None
        yield Hosts(f"{NETWORK}.1", f"{NETWORK}.0/24", made)


@contextmanager
def _alone() -> Iterator[None]:
    """The names and addresses are for one run at a time. The kernel releases the lock of a run that is killed."""
    with socket.socket(socket.AF_UNIX) as lock:
        try:
            lock.bind(f"\0{BRIDGE}")
        except OSError:
            raise NoHosts("another run has the hosts") from None
        yield


def _remove_old() -> None:
    """Remove what a run that was killed has left. Its processes have ended with it."""
    for line in _ip("-o", "link", "show").splitlines():
        link = line.split(": ")[1].partition("@")[0]
        if link.startswith(BRIDGE):
            _ip("link", "delete", link)
    for name in (line.split()[0] for line in _ip("netns", "list").splitlines()):
        if name.startswith(f"{BRIDGE}-"):
            _ip("netns", "delete", name)


def _host(stack: ExitStack, number: int) -> Host:
    name, outside, inside = f"{BRIDGE}-{number}", f"{BRIDGE}{number}", f"memdin{number}"
    address = f"{NETWORK}.{10 + number}"
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "delete", name)
    _ip("link", "add", outside, "type", "veth", "peer", "name", inside)
    stack.callback(_ip, "link", "delete", outside)  # at once: with the namespace it would go some time later
    _ip("link", "set", inside, "netns", name)
    _ip("link", "set", outside, "master", BRIDGE, "up")
    _ip("-n", name, "addr", "add", f"{address}/24", "dev", inside)
    _ip("-n", name, "link", "set", inside, "up")
    _ip("-n", name, "link", "set", "lo", "up")
    words = ["ip", "netns", "exec", name, "unshare", "--mount", "--uts", "sh", "-c", SETUP, "sh", f"host{number}"]
    words += [str(ROOT), tempfile.gettempdir()]
    keeper = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stack.callback(_end, keeper)
    assert keeper.stdout is not None
    assert keeper.stderr is not None
    if keeper.stdout.readline() != "ready\n":
        raise subprocess.CalledProcessError(1, words, stderr=keeper.stderr.read())
    return Host(address, FOLDER, ("nsenter", "--target", str(keeper.pid), "--mount", "--uts", "--net"), outside)


def _end(keeper: subprocess.Popen[str]) -> None:
    keeper.communicate()  # its input ends, and so does it


def _ip(*words: str) -> str:
    words = ("ip", *words)  # its folder differs between systems
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
