"""The prefilter: every match contains one of the literals its regex requires, so speed never costs a signal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memd.memory.gates import instructions
from memd.memory.said import excerpts, wishes
from memd.push.patterns import load
from memd.push.prefilter import Prefilter, required_literals
from memd.push.signals import load_patterns

DATA = Path(__file__).parents[1] / "data" / "signals"
ATTACKS = Path(__file__).parents[2] / "evaluation" / "attacks"

KNOWN = {
    r"\bi(?:'m| am) (?:an?|the) \w+": {"i'm a ", "i am a ", "i'm an ", "i am an ", "i'm the ", "i am the "},
    r"^(?:no|nope)[ ,]+(?:not|the)\b": {"no ", "no,", "nope ", "nope,"},
    r"colou?rs? (?=red)": {"color ", "colour ", "colors ", "colours "},
    r"\bx{2,}yz\b|不对": {"yz", "不对"},
    r"a+b": {"a", "b"},
    r"(?:a|b)*(?:wrong|not right)(?!er)": {"wrong", "not right"},
    r"[.]\.\?": {"..?"},
    r"[^.\n\]]{2,9}ab\n": {"ab\n"},
    r"[\]a]": {"]", "a"},
    r"(?m:^(?P<name>wrong)[:：])": {"wrong:", "wrong："},
}


@pytest.mark.parametrize(("pattern", "texts"), KNOWN.items())
def test_required_literals_are_found(pattern: str, texts: set[str]) -> None:
    """Groups, alternatives, options and plain character sets are joined; the cheaper set is kept."""
    found = required_literals(pattern)
    assert found
    assert found <= texts


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        r"\w+",
        "a?",
        "(?i)wrong",
        r"[a-c\d]\[?",
        r"(a)\1b",
        r"\x41b",
        "(?P=name)wrong",
        "a|",
        "[a",
        "(a",
        "[^]x]",
        "(?#no)a",
    ],
)
def test_a_regex_that_is_not_understood_requires_nothing(pattern: str) -> None:
    """Such a regex is always tried."""
    assert required_literals(pattern) == frozenset()


@settings(max_examples=30)
@given(st.data())
@pytest.mark.parametrize("pattern", [*KNOWN, r"\b(?:it|that)(?: is|'s)? (?:not |n't ){0,2}[a-c]{2,3}d(?:e|f.g)+?h?"])
def test_every_match_has_a_required_literal(pattern: str, data: st.DataObject) -> None:
    """Texts made from the pattern itself."""
    text = data.draw(st.from_regex(pattern))
    found = re.search(pattern, text)
    assert found is not None
    assert any(literal in found[0] for literal in required_literals(pattern))
    assert Prefilter([(pattern, pattern)]).select(found[0])


def test_every_match_of_the_shipped_patterns_has_a_required_literal() -> None:
    """Over all labelled texts: each match of a pattern contains one of its literals."""
    rows = [json.loads(line)["text"].lower() for file in DATA.glob("*.jsonl") for line in file.read_text().splitlines()]
    patterns = [source for sources in load_patterns().rules.values() for source in sources]
    assert _matches(patterns, rows) > 200
    assert sum(not required_literals(source) for source in patterns) < 5


def test_every_match_of_an_order_has_a_required_literal() -> None:
    """The same for what orders look like, over all labelled attacks and their look-alikes."""
    lines = [line for file in ATTACKS.rglob("*.jsonl") for line in file.read_text().splitlines()]
    rows = [text.lower() for line in lines for text in _texts(json.loads(line))]
    kinds = load(Path(instructions.__file__).parent / "orders")
    patterns = [source for sources in kinds.values() for source in sources]
    assert _matches(patterns, rows) > 200


def test_each_alternative_asks_for_further_literals_of_its_own() -> None:
    """One that is a literal by itself does not let the others through."""
    prefilter = Prefilter([(r"\b(?:ask|tell) \w+ to (?:sell|buy)\b|\bon sale\b", "shop")])
    assert prefilter.select("ask me later") == set()
    assert prefilter.select("ask them to buy") == prefilter.select("on sale") == {"shop"}


ENGLISH = [
    re.compile(source, re.I)
    for source in (
        r"\b(?:if|unless|said|no longer|wish|kidding)\b",
        r",?\s+(?:and )?not (?:in |at )?([^,.!]{1,60})",
        r"i(?:'m| am| live| work)(?: still)* (?:in|at) (.+)",
        r"(?:i|we)(?:'ve| have)? (?:this|that) (?:but|so)",
    )
]
SAID = "I live in Porto, if you wish; and I work at Acme. Kim's no longer said that, not this but so. "


@given(st.lists(st.sampled_from([*SAID, *"ıİſK", *SAID.split(), " "]), max_size=30).map("".join))
@example("whıch ıs so ıf you wonder")
@example("I wİſh")
@example("I \u212anow")
def test_patterns_that_ignore_case_are_candidates_wherever_they_match(text: str) -> None:
    """Turkish letters, the long s and the Kelvin sign are letters like others where case is ignored."""
    prefilter = Prefilter([(pattern.pattern, pattern) for pattern in ENGLISH], folded=True)
    assert {pattern for pattern in ENGLISH if pattern.flags & re.I and pattern.search(text)} <= prefilter.select(text)


def _matches(patterns: list[str], rows: list[str]) -> int:
    """How many matches there are; each contains one of the literals its pattern requires, and of the further ones."""
    matches = 0
    for source in patterns:
        literals, prefilter = required_literals(source), Prefilter([(source, source)])
        for text in rows:
            for found in re.finditer(source, text):
                matches += 1
                assert not literals or any(literal in found[0] for literal in literals), source
                assert prefilter.select(found[0]) == {source}
    return matches


def _texts(value: object) -> list[str]:
    """All strings in it."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=4).filter(str.isalnum), max_size=5))
def test_what_occurs_is_a_candidate(text: str, others: list[str]) -> None:
    """In any script, and among texts that overlap: of two patterns that occur both are found."""
    literal = "".join(filter(str.isalnum, text)) or "x"
    sources = {literal, literal[1:] or literal, *others}
    prefilter = Prefilter([(re.escape(source), source) for source in sources])
    whole = f"{text} {literal}"
    found = prefilter.select_part(prefilter.literals_in(whole), whole)
    assert set(found) == {source for source in sources if source in whole}


def test_a_regex_is_tried_only_where_all_that_it_requires_occurs() -> None:
    """Of two sets of literals both count, of a group's too; what is optional, repeated or ahead does not."""
    source = r"\b(?:please|kindly) (?:do not|never) \w+ (?:store|log) (?:this|that)?(?=zzz)"
    prefilter = Prefilter([(source, 1)])
    assert prefilter.select("please do not ever log it") == {1}
    for text in ("please log it", "do not ever store", "kindly store it"):
        assert not prefilter.select(text)
        assert not prefilter.select_part(prefilter.literals_in(f"{text} please do not log"), text)
    assert not prefilter.could_match(["log"]) or not prefilter.could_match(["do not"])


@pytest.mark.parametrize(
    "text",
    ["we moved to porto, and i now work four days a week", "my son is on the team", "我下个月搬到上海去，公司在浦东。"],
)
def test_words_of_every_text_make_no_candidate(text: str) -> None:
    """Of two words that a regex requires, the rarer one is looked for: a plain statement is tried with no wish."""
    assert not wishes._prefilter().select(text)


@given(st.text("ab'-_ ,我", max_size=30))
def test_three_words_are_found_as_by_counting(text: str) -> None:
    """One search that stops at the third word says the same as counting all."""
    assert (excerpts._ENOUGH_WORDS.search(text) is not None) == (len(excerpts._WORD.findall(text)) >= 3)
