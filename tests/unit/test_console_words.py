"""Every word of the console's interface has its translation, with the same {name}s in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

from memd.config.settings import ApplySettings
from memd.http.console.audit import DETAILS, RULE_WORDS
from memd.http.console.configuration import KNOWN
from memd.http.console.overview import PENDING, SPARKS
from memd.http.console.pages import PAGES
from memd.http.console.receipt import SKIPPED, WAITS, WRONG_ID
from memd.http.console.session import BADGES, MARKS
from memd.http.console.timeline import GAPS
from memd.http.console.translations import DEFAULT, LANGUAGES, preferred, translate, words
from memd.http.console.user import SUMMARIES
from memd.inbox.keys import KeyState
from memd.inbox.receipt import State
from memd.memory.listing import STATUSES
from memd.memory.profiles import PROJECT_FIELDS, USER_FIELDS
from memd.memory.projects.rights import ROLES
from memd.ops.doctor import CHECKS
from memd.recall.why import REASONS, WITHHELD
from memd.session.chat import ChatRole

ROOM = Path(__file__).parents[2] / "memd" / "http" / "console"
_LITERAL = r'"((?:[^"\\]|\\.)+)"'
_T = re.compile(rf"""\bt\(\s*(?:{_LITERAL}|'([^']+)')""")
_N = re.compile(rf"\bn\([^\"]*?{_LITERAL}\s*,\s*{_LITERAL}")
_SAY = re.compile(rf"\.say\(\s*(?:{_LITERAL} if [^\"]+ else )?{_LITERAL}")
_TABLE = re.compile(r"in \(\((.+?)\)\) if")
_PROBLEM = re.compile(rf"_login_page\(request, {_LITERAL}")
OTHERS = [name for name in LANGUAGES if name != DEFAULT]


def keys() -> Iterator[str]:
    """The English words of all pages: in templates by t(…) and n(…), in actions by say(…), and the pages' titles."""
    for file in sorted((ROOM / "templates").glob("*.html")):
        text = file.read_text(encoding="utf-8")
        yield from (one or other for one, other in _T.findall(text))
        yield from (many for _, many in _N.findall(text))
        for table in _TABLE.findall(text):
            yield from re.findall(r'"\w+", "([^"]+)"', table)
    for module in sorted(ROOM.glob("*.py")):
        text = module.read_text(encoding="utf-8")
        yield from (words for found in _SAY.findall(text) for words in found if words)
        yield from _PROBLEM.findall(text)
    yield from (page.title for page in PAGES)
    yield from (PENDING, *SPARKS)
    yield from (*SUMMARIES.values(), *REASONS.values(), *WITHHELD.values(), *CHECKS, *get_args(KeyState), *STATUSES)
    fields = (*USER_FIELDS.values(), *PROJECT_FIELDS.values())
    yield from (*ApplySettings().categories, *(field.label for field in fields))
    yield from (
        *GAPS.values(),
        *ROLES,
        *get_args(ChatRole),
        *(words for badges in MARKS.values() for words in badges),
        *BADGES,
    )
    yield from (*KNOWN, "file", *RULE_WORDS, *RULE_WORDS.values(), *DETAILS.values())
    yield from (*get_args(State), *WAITS.values(), *SKIPPED.values(), WRONG_ID)


@pytest.mark.parametrize("language", OTHERS)
def test_every_word_is_translated(language: str) -> None:
    """No page mixes languages: what is missing would stay English."""
    assert sorted(set(keys()) - words(language).keys()) == []


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_has_the_names_of_its_key(language: str) -> None:
    """A name that is misspelt would stop the page."""
    names = {key: {name for _, name, _, _ in Formatter().parse(key) if name} for key in words(language)}
    wrong = {
        key
        for key, text in words(language).items()
        if names[key] != {name for _, name, _, _ in Formatter().parse(text) if name}
    }
    assert wrong == set()


def test_the_keys_are_found() -> None:
    """The search for keys itself sees each of its places."""
    assert {"Overview", "Log in", "{count} facts", "The fact is added", "Confirmed last"} <= set(keys())


@pytest.mark.parametrize(
    ("asked", "found"),
    [("zh-CN,zh;q=0.9", "zh"), ("de, en;q=0.5", "en"), ("", "en"), ("xx" * 5000, "en"), ("ZH", "zh")],
)
def test_the_language_is_what_the_browser_prefers(asked: str, found: str) -> None:
    """The first one that there is."""
    assert preferred(asked) == found


def test_unknown_words_stay_as_they_are() -> None:
    """What a model or a server says is shown in its own words."""
    assert translate("zh", "no such words") == "no such words"
