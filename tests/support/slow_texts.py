"""A search for slow texts: repetitions for which a stage, or a pattern alone, takes more than linear time.

`python -m support.slow_texts` prints the CPU time of 100,000 characters, searches for five minutes, and prints the slow
texts.
"""

from __future__ import annotations

import argparse
import gc
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

from benchmarks.texts import stages
from memd.push.redaction import searches

SHORT, LONG = 2_500, 25_000
LIMIT = 12
"""Most CPU of 25,000 characters, in times the CPU of 2,500.

Longer ones do not stay in the processor's caches while other tests run: there linear time came to 13.
"""

TRIES, HOPELESS = 12, 40
"""Measurements until a text counts as slow; quadratic time is 100 times, and is not measured again."""

LONGER, GOES_ON = 100_000, 7
"""The CPU of 100,000 characters that is still growth, in times that of 25,000: 4 is linear, 16 quadratic. Work that is
bounded, and begins only in long texts, is neither."""

FIGURES = 100_000
"""Characters of the texts whose CPU is printed."""

NOISE_S = 0.002
"""A long text that takes less CPU than this is fast, whatever the ratio."""

_OTHER = bytearray(16 << 20)

Search = Callable[[str], object]

PIECES = (
    "sk-", "I live in Porto. ", "password is ", "4111 ", "41 ", "1 ", "4242424242424242 ", "1.", "1-", "1/",
    "eyJ", "a.", "a@", "://a:", "key=", "key", "密码是", "中文没有秘密。", "\u200b", "a\u00ad", "a\n1",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "Authorization: Bearer ", "session=", "abandon ", "curl -u ",
    "mysql -p", "(", "[", "<memory>", "<uploaded_files>", "\"", "' ", "pass ", "ghp_", "a1B2c3D4e5F6g7H8-",
    "a@a.", "+1 ", "DE89 ", "call me on ", "护照", "AB12 CD34 ", "xoxb-1-",
    "0123456789abcdef", "AC", "pin 1234 ", " ", "\n", "～", "－", "T3BlbkFJ", "1Q~",
    "pass x x x x x x ", "--token ", "//x/:_authToken=npm_", "/+=", "好", "thanks ", "你 ", "`", "no, ",
    "/user:a ", "abcd.\n", "I am. ", "\"a\" ", "about me:\n", "pin:abc1 ", "pin is ", "token: ",
    "my password for a b c ", "https://", "https://hooks", "<tool_response>", "<tool_response>\n```\n",
    "Action: a\nObservation: b\n", "-test" * 40 + " " * 40, "请记住", "remember that ",
    "DE89 " * 8 + "4242424242424242 ",
)  # fmt: skip
"""The worst known repetitions, and what patterns look for."""


def ratio(search: Search, piece: str) -> float:
    """The CPU of 25,000 characters in times that of 2,500; 0 when both are fast.

    What seems slow is measured again with cold caches: beside other tests the long text always has those, the short one
    not.
    """
    times = _ratio(search, piece, cold=False)
    return times if times <= LIMIT else min(times, _ratio(search, piece, cold=True))


def goes_on(search: Search, piece: str) -> bool:
    """Whether the CPU still grows by more than the length in longer texts."""
    long, longer = (cpu(search, _repeated(piece, size), 3) for size in (LONG, LONGER))
    return longer > GOES_ON * long


def _repeated(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def _ratio(search: Search, piece: str, *, cold: bool) -> float:
    short, long = (_repeated(piece, size) for size in (SHORT, LONG))
    search(short)
    longs: list[float] = []
    shorts: list[float] = []
    while True:
        longs.append(_cpu_of(search, [long], cold=cold))
        if min(longs) < NOISE_S:
            return 0.0
        shorts.append(_cpu_of(search, [short] * 10, cold=cold) / 10)
        # Two ways to see past other load: the least disturbed of each, and what is usual for two in a row.
        times = min(min(longs) / min(shorts), median(one / ten for one, ten in zip(longs, shorts, strict=True)))
        if times <= LIMIT or len(longs) == TRIES or (times > HOPELESS and len(longs) > 2):
            return times


def _cpu_of(search: Search, texts: list[str], *, cold: bool) -> float:
    """The CPU seconds of these texts; `cold`: each after 16 MB of something else."""
    if not cold:
        return cpu(lambda _: list(map(search, texts)), "", 1)
    seconds = 0.0
    for text in texts:
        _OTHER[::64] = bytes(len(_OTHER) // 64)
        seconds += cpu(search, text, 1)
    return seconds


def cpu(search: Search, text: str, tries: int) -> float:
    """The least CPU seconds of several tries: other load only adds. The garbage of the other tests is not counted."""
    times = []
    gc.disable()
    try:
        for _ in range(tries):
            start = time.process_time()
            search(text)
            times.append(time.process_time() - start)
    finally:
        gc.enable()
    return max(min(times), 1e-6)


def invented(source: str, seed: int) -> Iterator[str]:
    """Repetitions made of the literals and character sets of a pattern."""
    rng = random.Random(f"{seed} {source}")  # noqa: S311  (repeatable, no secret)
    literals = [
        text for text in re.split(r"[^A-Za-z0-9_@:/=.-]+", re.sub(r"\\[a-zA-Z]|\(\?[<!=:a-zA-Z]+", " ", source)) if text
    ]
    others = ["a", "A", "1", "-", ".", " ", ":", "=", "@", "a1", "A1b2"]
    while True:
        chosen = [rng.choice(literals or others), *rng.sample(others, rng.randint(0, 3))]
        rng.shuffle(chosen)
        yield "".join(text * rng.choice((1, 1, 1, 8, 40)) for text in chosen)


def combined(seed: int) -> Iterator[str]:
    """Repetitions of two or three known pieces: some cost much only where others stand between them."""
    rng = random.Random(seed)  # noqa: S311  (repeatable, no secret)
    while True:
        chosen = rng.choices(PIECES, k=rng.choice((2, 3)))
        yield "".join(piece * rng.choice((1, 1, 2, 8, 20)) for piece in chosen)[:SHORT]


def slow(seconds: float, seed: int) -> list[str]:
    """The slow texts found in some seconds: each pattern alone on pieces made of it, each stage on these and others."""
    found: list[str] = []
    stop = time.monotonic() + seconds
    makers = [(source, search, invented(source, seed)) for source, search in searches()]
    all_stages, others = stages(), combined(seed)
    while time.monotonic() < stop:
        for source, search, pieces in makers:
            piece = next(pieces)
            side_by_side = next(others)
            tried = [(source, search, piece)]
            if seed:
                tried += [(name, run, text) for text in (piece, side_by_side) for name, run in all_stages.items()]
            for name, run, text in tried:
                if (times := ratio(run, text)) > LIMIT and (text is not side_by_side or goes_on(run, text)):
                    found.append(f"{name}: {times:.0f} times for {text!r}")  # whole: its end may be what is slow
            if time.monotonic() > stop:
                break
    return found


def figures() -> Iterator[str]:
    """The CPU milliseconds of each stage for 100,000 characters: ordinary English, and the slowest known repetition."""
    for name, search in stages().items():
        plain, *others = (((piece * FIGURES)[:FIGURES], piece) for piece in (PIECES[1], *PIECES))
        search(plain[0])
        worst, piece = max((cpu(search, text, 1), piece) for text, piece in others)
        yield f"{name}: {cpu(search, plain[0], 3) * 1000:.1f} ms, at worst {worst * 1000:.1f} ms ({piece!r})"


def main() -> int:
    """Print the figures, search, and print the findings; exit code 1 when a text is slow."""
    parser = argparse.ArgumentParser(prog="python -m support.slow_texts", description="A search for slow texts.")
    parser.add_argument("--seconds", type=float, default=300, help="how long to search")
    seconds = parser.parse_args().seconds
    print(*figures(), sep="\n")  # noqa: T201  (a command)
    found = slow(seconds, int(time.time()))
    print("\n".join(found) or "no slow text found")  # noqa: T201  (a command)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
