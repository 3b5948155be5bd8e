"""How well memd's search finds the evidence for a question: recall@1/5/10/20, MRR and coverage over a labelled set.

    python -m benchmarks.retrieval [FILE…] [--against fts5] [--embedder package.function] [--misses] [--json]

`memd eval --retrieval FILE` measures the same; here SQLite's full text search answers the same questions. The format of
a file is that of memd.evaluation.retrieval. Without FILE: the set of this repository.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from pathlib import Path

from benchmarks.fts5 import Fts5
from memd import __version__
from memd.context import estimate_tokens
from memd.evaluation.retrieval import DEPTHS, SCORE_HEAD, Labelled, MemdMemory, measure, read, score_rows

OWN = Path(__file__).parents[1] / "evaluation" / "retrieval.jsonl"


class Fts5Memory:
    """SQLite's full text search over the same texts, with pairs of characters for Chinese."""

    def __init__(self, labelled: Labelled) -> None:
        self._facts = labelled.groups
        self._tables = {group: Fts5([fact["content"] for fact in facts]) for group, facts in labelled.groups.items()}

    def search(self, group: str, query: str) -> list[str]:
        """The ids of the texts found."""
        return [self._facts[group][place]["id"] for place in self._tables[group].search(query, DEPTHS[-1])]

    def block(self, group: str, query: str, max_tokens: int) -> str:
        """The texts found, as many as fit."""
        texts = {fact["id"]: fact["content"] for fact in self._facts[group]}
        block: list[str] = []
        for name in self.search(group, query):
            if estimate_tokens("\n".join([*block, texts[name]])) <= max_tokens:
                block.append(texts[name])
        return "\n".join(block)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=[OWN])
    parser.add_argument("--against", choices=["fts5"])
    parser.add_argument("--embedder")
    parser.add_argument("--tokens", type=int, default=2_000, help="the budget of the block, for the coverage")
    parser.add_argument("--misses", action="store_true", help="print questions whose evidence is not in the first five")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    labelled = read(wanted.files)
    with tempfile.TemporaryDirectory() as data_dir:
        memory = MemdMemory(labelled, Path(data_dir), wanted.embedder)
        found = {"memd": measure(labelled, memory, wanted.tokens)}
    if wanted.against == "fts5":
        found["fts5"] = measure(labelled, Fts5Memory(labelled), wanted.tokens)
    if wanted.json:
        figures = {name: {group: score.figures() for group, score in scores.items()} for name, scores in found.items()}
        about = {
            "memd": __version__,
            "python": platform.python_version(),
            "files": [file.name for file in wanted.files],
        }
        print(json.dumps({**about, "figures": figures}, indent=2))
        return
    for row in (SCORE_HEAD, *score_rows(found)):
        print("".join(f"{cell:<10}" for cell in row).rstrip())
    for question in found["memd"]["all"].missed if wanted.misses else ():
        print(f"not among the first {DEPTHS[1]}: {question.id} {question.text}")


if __name__ == "__main__":
    main()
