"""Runs the tests of tests/frameworks, each with the real package in an environment of its own: `make test-frameworks`.

PYTHONPATH=tests .venv/bin/python -m support.frameworks              # all
PYTHONPATH=tests .venv/bin/python -m support.frameworks pydantic-ai  # one
PYTHONPATH=tests .venv/bin/python -m support.frameworks --smoke      # what .venv can run of them

What cannot be run here is named. DeerFlow is on no package index: DEERFLOW names the folder of a checkout.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
PLACE = ROOT / ".frameworks"
PINS = ROOT / "constraints.txt"
PYTEST = ["-m", "pytest", "-c", "../pyproject.toml", "--rootdir=..", "-p", "no:cacheprovider", "-q", "-rs"]
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")


@dataclass(frozen=True, slots=True)
class Framework:
    """One environment: its test file, memd's extras, further packages, and the oldest Python. NAME.txt has its pins."""

    name: str
    file: str
    extras: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    python: tuple[int, int] = (3, 11)
    needs: str = ""
    """A variable that must be set."""


FRAMEWORKS = (
    Framework("langchain", "test_langchain_tools.py", ("langchain",), ("langchain-openai",)),
    Framework("openai-agents", "test_openai_agents.py", ("openai-agents",)),
    Framework("pydantic-ai", "test_pydantic_ai.py", ("pydantic-ai",), ("openai",)),
    Framework("agentscope", "test_agentscope.py", ("agentscope",)),
    Framework("agentscope-1", "test_agentscope_1.py", packages=("agentscope", "greenlet", "tqdm")),
    Framework("deerflow", "test_deerflow.py", ("langchain",), ("python-dotenv",), python=(3, 12), needs="DEERFLOW"),
)


def main() -> int:
    """Run them one after the other; exit code 0 only when none failed and each could be tried or is said not to."""
    parser = argparse.ArgumentParser(prog="python -m support.frameworks", description="Tests with real frameworks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--smoke", action="store_true", help="what the development environment can run of them")
    options = parser.parse_args()
    if options.smoke:
        return _tested(Path(sys.executable), FRAMEWORKS[0])
    wanted = [one for one in FRAMEWORKS if not options.names or one.name in options.names]
    return max([_run(one) for one in wanted], default=2)


def _run(framework: Framework) -> int:
    began = time.monotonic()
    code, outcome = _outcome(framework)
    sys.stdout.write(f"== {framework.name}: {outcome} ({time.monotonic() - began:.0f} s)\n")
    sys.stdout.flush()
    return code


def _outcome(framework: Framework) -> tuple[int, str]:
    if framework.needs and not os.environ.get(framework.needs):
        return 0, f"not run: {framework.needs} is not set"
    python = _python(framework.python)
    if python is None:
        return 0, f"not run: there is no Python {framework.python[0]}.{framework.python[1]} here"
    made = _environment(framework, python)
    if made is None:
        return 1, f"FAILED: its packages cannot be installed here, see .frameworks/{framework.name}.log"
    code = _tested(made, framework)
    return code, "passed" if code == 0 else "FAILED, see above"


def _python(oldest: tuple[int, int]) -> str | None:
    if sys.version_info >= oldest:
        return getattr(sys, "_base_executable", sys.executable)
    names = (f"python3.{minor}" for minor in range(oldest[1], oldest[1] + 4))
    return next((found for found in map(shutil.which, names) if found and _works(found)), None)


def _works(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def _environment(framework: Framework, python: str) -> Path | None:
    """Its interpreter; the environment is made when it is missing, or older than what it is made from."""
    place = PLACE / framework.name
    ready, own = place / ".ready", TESTS / "frameworks" / f"{framework.name}.txt"
    sources = [file for file in (PINS, own, ROOT / "pyproject.toml") if file.exists()]
    if ready.exists() and ready.stat().st_mtime > max(file.stat().st_mtime for file in sources):
        return place / "bin" / "python"
    shutil.rmtree(place, ignore_errors=True)
    PLACE.mkdir(exist_ok=True)
    pins = PLACE / f"{framework.name}.txt"
    pins.write_text("\n".join(_pins(own)) + "\n", encoding="utf-8")
    memd = f"{ROOT}[{','.join(('embedded', *framework.extras))}]"
    pip = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "-c", str(pins)]
    with (PLACE / f"{framework.name}.log").open("wb") as log:
        for words in ([python, "-m", "venv", str(place)], [*pip, "-e", memd, *framework.packages, *TOOLS]):
            if subprocess.run(words, stdout=log, stderr=log, check=False).returncode:
                return None
    ready.touch()
    return place / "bin" / "python"


def _pins(own: Path) -> list[str]:
    """The framework's own pins, and memd's for everything else."""
    mine = own.read_text(encoding="utf-8").splitlines() if own.exists() else []
    named = {line.partition("==")[0] for line in mine}
    return [*mine, *(line for line in PINS.read_text().splitlines() if line.partition("==")[0] not in named)]


def _tested(python: Path, framework: Framework) -> int:
    words: Sequence[str] = [str(python), *PYTEST, f"frameworks/{framework.file}"]
    return subprocess.run(words, cwd=TESTS, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
