"""Personal data: what `redaction.pii` cuts, and what it leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from memd.push import personal
from memd.push.redaction import merged, redact

CASES = [orjson.loads(line) for line in (Path(__file__).parents[1] / "data/blind/personal.jsonl").open("rb")]


def seen(text: str) -> list[tuple[str, str]]:
    """What is found, in order: text and kind."""
    return [(text[start:end], kind) for start, end, kind in merged(personal.find(text))]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Mail me at ana.b+x@mail.example.org.", "Mail me at [redacted:email]."),
        ("我的手机是13812345678，谢谢", "我的手机是[redacted:phone]，谢谢"),
        ("Pay DE89 3704 0044 0532 0130 00 AND call +49 30 901820", "Pay [redacted:iban] AND call [redacted:phone]"),
        ("Order 1234567890 of 2026-11-23, from 192.168.10.12", "Order 1234567890 of 2026-11-23, from 192.168.10.12"),
        (
            "my password is Xk9!vQ2p and my mail a@b.io",
            "my password is [redacted:password] and my mail [redacted:email]",
        ),
    ],
)
def test_personal_data_is_cut_where_it_is_asked_for(text: str, kept: str) -> None:
    """Beside the secrets, which are always cut; once is enough."""
    cut = redact(text, pii=True)[0]
    assert cut == kept
    assert redact(cut, pii=True)[0] == cut
    assert "[redacted:email]" not in redact(text)[0]


@pytest.mark.parametrize(("half", "missed", "alarms"), [("open", 0.05, 0.05), ("held_out", 0.2, 0.05)])
def test_blind_cases(half: str, missed: float, alarms: float) -> None:
    """At most these shares of what is there are missed, and of the look-alikes touched."""
    cases = [case for case in CASES if case["half"] == half]
    there = [(case, entry) for case in cases for entry in case["found"]]
    lost = [entry for case, entry in there if not any(entry["text"] in text for text, _ in seen(case["text"]))]
    plain = [case for case in cases if not case["found"]]
    touched = [case for case in plain if seen(case["text"])]
    assert len(lost) <= missed * len(there), f"{len(lost)} of {len(there)} missed"
    assert len(touched) <= alarms * len(plain), f"{len(touched)} of {len(plain)} touched"


def test_without_its_package_memd_says_what_to_install() -> None:
    """Before anything is taken in hand."""
    code = (
        "import sys; sys.modules['stdnum.cn'] = None; from memd.push import personal\n"
        "try: personal.prepare()\nexcept Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"ConfigError {personal.NO_STDNUM}\n"
