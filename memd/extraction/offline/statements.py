"""Rules and the statements they find, shared by the languages of the offline extractor."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MAX_VALUE_CHARS = 120
"""A longer value is a paragraph, not a plain statement."""

# Chinese puts a space around Latin words and numbers.
_HAN_BEFORE = re.compile("(?<=[\u4e00-\u9fff])\\{0\\}")
_HAN_AFTER = re.compile("\\{0\\}(?=[\u4e00-\u9fff])")


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of plain statement. In the template `{0}` is the value and `{1}` the kin word of a `kin` rule.

    `single`: a user has one of these at a time, so a new one replaces the old one. `long`: the value may be a phrase
    with "and" and commas. `accept` makes the final decision on a value.
    """

    kind: str
    pattern: re.Pattern[str]
    template: str
    category: str
    single: bool = False
    long: bool = False
    accept: Callable[[str], bool] | None = None
    kin: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the user.

    Kind `over`: the fact of kind `content` with this value no longer holds. Kind `correction`: `value` is right and
    `wrong` was wrong, whatever fact it belongs to; `content` may be empty.
    """

    kind: str
    content: str
    category: str
    value: str = ""
    single: bool = False
    corrects: bool = False
    wrong: str = ""
    person: str = ""
    relationship: str = ""


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


def statement_by(rule: Rule, value: str, relationship: str = "") -> Statement | None:
    """The statement a rule makes of a value; None when the rule does not accept the value."""
    if not value or (rule.accept and not rule.accept(value)):
        return None
    template = rule.template.replace("{1}", relationship)
    if value[0].isascii() and value[0].isalpha():
        template = _HAN_BEFORE.sub(" {0}", template)
    if value[-1].isascii() and value[-1].isalpha():
        template = _HAN_AFTER.sub("{0} ", template)
    return Statement(
        kind=rule.kind,
        content=template.replace("{0}", value),
        category=rule.category,
        value=value,
        single=rule.single,
        person=value if rule.kin else "",
        relationship=relationship,
    )
