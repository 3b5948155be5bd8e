"""Rights: the table of who may do what, role by verb by visibility by own, written down beside the function."""

from __future__ import annotations

from itertools import product

import pytest

from memd.memory.projects.rights import STANDINGS, VERBS, VISIBILITIES, Standing, Verb, Visibility, may

MEMBERS = "owner admin editor viewer"
TABLE: dict[tuple[str, str, bool], str] = {
    # (verb, visibility, own): who may
    ("read", "public", True): f"{MEMBERS} app",
    ("read", "public", False): f"{MEMBERS} app",
    ("read", "members", True): MEMBERS,
    ("read", "members", False): MEMBERS,
    ("read", "owner_only", True): MEMBERS,
    ("read", "owner_only", False): "",
    ("export", "public", True): MEMBERS,
    ("export", "public", False): MEMBERS,
    ("export", "members", True): MEMBERS,
    ("export", "members", False): MEMBERS,
    ("export", "owner_only", True): MEMBERS,
    ("export", "owner_only", False): "",
    ("edit", "public", True): "owner admin editor",
    ("edit", "public", False): "owner admin",
    ("edit", "members", True): "owner admin editor",
    ("edit", "members", False): "owner admin",
    ("edit", "owner_only", True): MEMBERS,
    ("edit", "owner_only", False): "",
    ("delete", "public", True): "owner admin editor",
    ("delete", "public", False): "owner admin",
    ("delete", "members", True): "owner admin editor",
    ("delete", "members", False): "owner admin",
    ("delete", "owner_only", True): MEMBERS,
    ("delete", "owner_only", False): "",
    ("publish", "public", True): "owner admin editor",
    ("publish", "public", False): "",
    ("publish", "members", True): "owner admin editor",
    ("publish", "members", False): "",
    ("publish", "owner_only", True): "owner admin editor",
    ("publish", "owner_only", False): "",
    ("hide", "public", True): "owner admin editor",
    ("hide", "public", False): "",
    ("hide", "members", True): "owner admin editor",
    ("hide", "members", False): "",
    ("hide", "owner_only", True): "owner admin editor",
    ("hide", "owner_only", False): "",
}
OF_PROJECT = {
    "create": "owner admin editor",
    "decide": "owner admin",
    "profile": "owner admin",
    "members": "owner admin",
    "see_members": MEMBERS,
    "close": "owner",
}


@pytest.mark.parametrize("standing", STANDINGS)
def test_the_function_says_what_the_table_says(standing: Standing) -> None:
    """Every cell: 6 standings by 12 verbs by 3 visibilities by own or not."""
    for verb, visibility, own in product(VERBS, VISIBILITIES, (True, False)):
        who = OF_PROJECT[verb] if verb in OF_PROJECT else TABLE[verb, visibility, own]
        assert may(standing, verb, visibility, own=own) == (standing in who.split()), (verb, visibility, own)


@pytest.mark.parametrize(("verb", "visibility"), [*product(VERBS, VISIBILITIES)])
def test_a_stranger_may_nothing(verb: Verb, visibility: Visibility) -> None:
    """Not even what is their own there: who has left is one."""
    assert not may("stranger", verb, visibility, own=True)
