"""The load: conversations of a given length, the same in every run, and full documents."""

from __future__ import annotations

import random
from typing import Any

from memd.context import Bucket, digest
from memd.memory.document import Document, empty_document

# No "memory": a sentence that begins with "memory on for" switches remembering, and its turn is not kept.
WORDS = [
    "the",
    "a",
    "project",
    "deploy",
    "server",
    "release",
    "works",
    "on",
    "python",
    "code",
    "with",
    "my",
    "team",
    "and",
    "we",
    "use",
    "redis",
    "for",
    "queues",
    "because",
    "it",
    "is",
    "fast",
    "but",
    "sometimes",
    "the",
    "build",
    "breaks",
    "before",
    "lunch",
    "then",
    "somebody",
    "looks",
    "at",
    "logs",
    "until",
    "evening",
    "while",
    "others",
    "wait",
]
CHINESE = "我们的项目在服务器上运行很稳定今天上线之前先看一下日志再决定下一步怎么做大家都同意这样安排"
TOWNS = ["Porto", "Lisbon", "Berlin", "Graz", "Lyon", "Turin", "Ghent", "Leeds", "Malmo", "Bergen", "Krakow", "Split"]
"""The share of Chinese sentences: the two scripts take different paths through signals and token counts."""


def text(chars: int, seed: int, chinese: float = 0.1) -> str:
    """Sentences of this many characters, some of them Chinese: small talk without facts."""
    rng = random.Random(seed)  # noqa: S311  (the same text in every run)
    parts: list[str] = []
    size = 0
    while size < chars:
        part = CHINESE[:20] + "。" if rng.random() < chinese else " ".join(rng.choices(WORDS, k=12)).capitalize() + ". "
        parts.append(part)
        size += len(part)
    return "".join(parts)[:chars].strip()


def conversation(number: int, chars: int = 512, chinese: float = 0.1) -> dict[str, Any]:
    """Push `number`: two messages of `chars` characters with ids, of a separate user and thread."""
    return {
        "thread_id": f"thread-{number}",
        "user_id": f"user-{number}",
        "messages": [
            {"role": "user", "content": statement(number, chars, chinese), "id": f"u{number}"},
            {"role": "assistant", "content": text(chars, number + 1, chinese), "id": f"a{number}"},
        ],
    }


def statement(number: int, chars: int = 512, chinese: float = 0.1) -> str:
    """A user's turn with one statement that the offline extractor also reads."""
    said = f"I live in {TOWNS[number % len(TOWNS)]}. "
    return said + text(max(20, chars - len(said)), number, chinese)


def full_document(bucket: Bucket, facts: int = 100, seed: int = 0) -> Document:
    """A document with this many facts of about 60 characters, a tenth Chinese, with evidence, and all six summaries.

    Another seed gives other facts.
    """
    document = empty_document(bucket)
    stamp = "2026-11-01T10:00:00.000Z"
    for section in ("user", "history"):
        for name in document[section]:
            document[section][name] = {"summary": text(160, len(name)), "updatedAt": stamp}
    for number in range(facts):
        content = f"The user keeps note {number} on {text(36, number + 1_000 * seed, 0)}"
        if number % 10 == 9:
            content = f"用户在项目里记下了第 {number + 1_000 * seed} 条笔记。"
        document["facts"].append(
            {
                "id": "fact_" + digest("benchmark", str(number), size=4),
                "content": content,
                "category": ("preference", "knowledge", "context", "goal")[number % 4],
                "confidence": 0.8 + number % 20 / 100,
                "createdAt": stamp,
                "source": f"thread-{number % 7}",
                "evidence": [{"thread": f"thread-{number % 7}", "message": f"m{number}", "quote": content[-40:]}],
            }
        )
    document["ledger"] = {f"thread-{n}": [f"i{n:036x}" for n in range(n * 40, n * 40 + 40)] for n in range(7)}
    return document
