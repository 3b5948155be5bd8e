"""schemathesis against `memd serve`: generates requests from its OpenAPI document and checks the responses against it.

PYTHONPATH=tests .venv/bin/python -m support.http_fuzz --examples 200 --phases examples,coverage,fuzzing,stateful
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from memd.inbox.connection import inbox_url
from memd.ops import server
from support import make_settings
from support.http_support import Site, install, serving


def fuzz(
    site: Site, *, examples: int, phases: str, seconds: int | None = None, seed: int | None = None
) -> subprocess.CompletedProcess[str]:
    """One run against a server with tokens; exit code 0: no finding. `seconds`: repeat until they are over."""
    words = [
        sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{site.port}/openapi.json",
        "--header", f"Authorization: Bearer {site.token}",
        "--max-examples", str(examples),
        "--phases", phases,
        "--exclude-checks", "ensure_resource_availability",  # it asks for one user's fact in another's name
        "--continue-on-failure",
        "--warnings", "off",
        "--no-color",
    ]  # fmt: skip
    if seconds is not None:
        words += ["--max-time", str(seconds)]
    if seed is not None:
        words += ["--seed", str(seed)]
    env = {**os.environ, "SCHEMATHESIS_HOOKS": "support.http_hooks", "PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.run(words, env=env, cwd=site.settings.data_dir, capture_output=True, text=True, check=False)


def main(words: Sequence[str] | None = None) -> int:
    """A run with a server of its own; prints the findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=200, help="generated requests for each operation")
    parser.add_argument("--seconds", type=int, help="repeat with new requests until these are over")
    parser.add_argument("--phases", default="examples,coverage,fuzzing,stateful")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        settings = make_settings(Path(folder), None)
        process = server.start(settings)
        try:
            with serving(inbox_url(settings), locked=True) as site:
                install(site)
                done = fuzz(
                    site, examples=options.examples, phases=options.phases, seconds=options.seconds, seed=options.seed
                )
        finally:
            server.stop(process)
    sys.stdout.write(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
