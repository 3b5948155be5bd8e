"""What schemathesis has to know to make up requests that memd serve takes: the formats that patterns cannot say whole.

Loaded by SCHEMATHESIS_HOOKS in the process that `http_fuzz` starts.
"""

from __future__ import annotations

from datetime import date
from typing import Any

import schemathesis
from hypothesis import strategies as st

from memd.errors import Rejected
from memd.validation import check_identifier


def _is_id(value: str) -> bool:
    try:
        check_identifier("user_id", value)
    except Rejected:
        return False
    return True


_LETTERS = st.characters(exclude_categories=("Cs", "Cc"))
schemathesis.openapi.format("memd-id", st.text(_LETTERS, min_size=1, max_size=60).filter(_is_id))
schemathesis.openapi.format(
    "memd-fact",
    st.lists(st.sampled_from(("tea", "Porto", "likes", "喝绿茶", "梅子", "née")), min_size=5, max_size=9).map(" ".join),
)
schemathesis.openapi.format("memd-time", st.dates(min_value=date(1000, 1, 1)).map(str))


@schemathesis.hook
def filter_body(_: schemathesis.HookContext, body: Any) -> bool:
    """Flushes that wait would take their time, each of them."""
    return not (isinstance(body, dict) and body.get("wait") is True)
