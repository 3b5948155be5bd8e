"""The package: the wheel carries what it needs, the entry points work, and what is light stays light."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from support import ENDS_S

import memd
from memd.inbox import library


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=ENDS_S, check=False)


@pytest.mark.skipif(not os.environ.get("INSTALLED_WHEEL"), reason="not run: only `make test` installs the wheel")
def test_the_tests_run_against_the_installed_wheel() -> None:
    """In CI it is the wheel that is tested, not the source tree beside the tests."""
    assert "site-packages" in str(Path(memd.__file__))


@pytest.mark.parametrize(
    "name",
    [
        *(f"inbox/lua/{part}.lua" for part in (*library.SHARED, "push", *library.DRAIN)),
        "push/signals/en.yaml",
        "push/signals/zh.yaml",
        "push/answers/zh.yaml",
        "push/redaction/common.yaml",
        "demo/conversations.jsonl",
        "py.typed",
    ],
)
def test_the_package_carries_its_data(name: str) -> None:
    """Lua, patterns and demo data are there after an installation."""
    assert resources.files("memd").joinpath(name).is_file()


def test_the_version_is_printed() -> None:
    """`memd --version` and `python -m memd --version` say the version."""
    assert run("-m", "memd", "--version").stdout.strip() == f"memd {memd.__version__}"


@pytest.mark.parametrize(
    "module", ["memd.client", "memd.scheduler.loop", "memd.ops.server", "memd.cli.app", "memd.ops.supervisor"]
)
def test_what_is_light_does_not_load_the_sdk(module: str) -> None:
    """CLI, scheduler, server and client never import anthropic."""
    done = run("-c", f"import sys, {module}; sys.exit('anthropic' in sys.modules)")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "module", ["memd.client", "memd.scheduler.loop", "memd.cli.app", "memd.ops.supervisor", "memd.http.keyring"]
)
def test_only_serve_loads_what_serves(module: str) -> None:
    """Starlette, uvicorn and the metrics are loaded by `memd serve` alone."""
    loaded = "any(name in sys.modules for name in ('starlette', 'uvicorn', 'prometheus_client', 'memd.http.routes'))"
    done = run("-c", f"import sys, {module}; sys.exit({loaded})")
    assert done.returncode == 0, done.stderr


def test_a_push_from_the_shell_loads_neither_rq_nor_rich() -> None:
    """`memd push` pays for nothing that it does not use."""
    heavy = ("rq", "rich", "anthropic", "mcp", "langchain")
    code = f"import sys, memd.cli.app, memd.client; sys.exit(any(name in sys.modules for name in {heavy}))"
    done = run("-c", code)
    assert done.returncode == 0, done.stderr


def test_the_sdk_is_imported_by_its_own_extractor_only() -> None:
    """Neither memd.testing nor the rules import the SDK, which takes a second."""
    code = (
        "import sys; import memd.testing; from memd.extraction import open_extractor, preload; "
        "from memd.config import ExtractionSettings; s = ExtractionSettings(extractor='rules'); preload(s); "
        "open_extractor(s); print([m for m in ('anthropic', 'openai', 'httpx2') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
