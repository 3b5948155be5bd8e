"""How well memd's search finds the evidence for a question: recall@1/5/10/20, MRR and coverage over a labelled set.

    python -m benchmarks.retrieval [FILE…] [--against fts5] [--embedder package.function] [--misses] [--json]

`memd eval --retrieval FILE` measures the same; here SQLite's full text search answers the same questions. The format of
a file is that of memd.evaluation.retrieval_sets. Without FILE: the set of this repository.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

from benchmarks.fts5 import Fts5
from memd import __version__
from memd.config import RecallSettings
from memd.context import estimate_tokens
from memd.evaluation.retrieval import DEPTHS, SCORE_HEAD, by_group, measure, score_rows
from memd.evaluation.retrieval_memory import MemdMemory, Memories
from memd.evaluation.retrieval_sets import EvidenceQuestion, Labelled, read
from memd.recall.vectors import Vectors, load_embedder

OWN = Path(__file__).parents[1] / "evaluation" / "retrieval.jsonl"


class Fts5Memory:
    """SQLite's full text search over the same texts, with pairs of characters for Chinese."""

    def __init__(self, labelled: Labelled) -> None:
        self._facts = labelled.groups
        self._tables = {group: Fts5([fact["content"] for fact in facts]) for group, facts in labelled.groups.items()}

    def search(self, question: EvidenceQuestion) -> list[str]:
        """The ids of the texts found."""
        facts = self._facts[question.group]
        return [facts[place]["id"] for place in self._tables[question.group].search(question.text, DEPTHS[-1])]

    def block(self, question: EvidenceQuestion, max_tokens: int) -> str:
        """The texts found, as many as fit."""
        texts = {fact["id"]: fact["content"] for fact in self._facts[question.group]}
        block: list[str] = []
        for name in self.search(question):
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
    vectors = Vectors(load_embedder(wanted.embedder)) if wanted.embedder else None
    memory = MemdMemory(Memories(labelled), RecallSettings(), vectors)
    results = measure(labelled, memory, wanted.tokens)
    found = {"memd": by_group(results)}
    if wanted.against == "fts5":
        found["fts5"] = by_group(measure(labelled, Fts5Memory(labelled), wanted.tokens))
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
    for result in results if wanted.misses else ():
        if result.is_missed and not result.question.held_out:
            print(f"not among the first {DEPTHS[1]}: {result.question.id} {result.question.text}")


if __name__ == "__main__":
    main()
