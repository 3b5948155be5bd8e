"""Personal data: what `redaction.pii` cuts, and what it leaves."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memd.push import personal
from memd.push.redaction import redact


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


def test_without_its_package_memd_says_what_to_install() -> None:
    """Before anything is taken in hand."""
    code = (
        "import sys; sys.modules['stdnum.cn'] = None; from memd.push import personal\n"
        "try: personal.prepare()\nexcept Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"ConfigError {personal.NO_STDNUM}\n"
