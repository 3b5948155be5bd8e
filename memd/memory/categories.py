"""Categories: the names that other systems use for memd's own count at every door."""

from __future__ import annotations

import re
from collections.abc import Collection

from memd.memory.facts import DEFAULT_CATEGORY
from memd.memory.text import one_line

ALIASES = {"skill": "knowledge", "habit": "behavior", "behaviour": "behavior"}
"""Other names of categories; each counts unless the settings have a category of that name."""

OTHER_NAMES = ("fact", *ALIASES)
"""All names that a door takes besides the categories of the settings."""

_FAMILY = r"(?:child(?:ren)?|kids?|sons?|daughters?|sisters?|brothers?|siblings?|twins|wife|husband|grandchild(?:ren)?)"
_WHO = re.compile(
    r"(?i:(?:the )?user)(?:"
    r"(?i:'s (?:full |first |last |sur)?(?:name|age|birthday|pronouns?|gender|nationality)\b)"
    r"| (?i:is) (?:(?i:an? (?!bit\b|little\b|lot\b|(?:big )?fan\b|member\b)|\d|from\b|called\b|named\b"
    r"|married\b|single\b|divorced\b|engaged\b|widowed\b|retired\b|vegan\b|vegetarian\b|(?:fe)?male\b|left-handed\b"
    r"|deaf\b|blind\b)|[A-Z])"
    r"| (?i:was born\b|comes from\b|turn(?:s|ed) \d|grew up\b|lives? (?:in|at|on|near|with|alone)\b)"
    r"| (?i:works? (?:as|at|for|in) (?!home\b|(?:the )?(?:mornings?|afternoons?|evenings?)\b))"
    r"| (?i:speaks) [A-Z]| (?i:stud(?:ies|ied) \w)| (?i:has been an? )"
    rf"| (?i:has (?:an?|one|two|three|four|five|no|\d+|only) (?:\w+ )?{_FAMILY}"
    r"(?:\s*[.,]|$| and\b| who\b| named\b| called\b))"
    r")"
    r"|用户(?:现在|目前|已经?|已)?(?:叫|姓|名叫|是(?![想说要否因为])|今年?[\d一二三四五六七八九十]+岁|[\d一二三四五六七八九十]+岁"
    r"|出生|生于|来自|会说|的(?:名字|姓名|年龄|生日|国籍|性别)|居?住|老家|已?婚|未婚|单身|离异|毕业"
    r"|在[^，。]{1,12}(?:(?:工作|上班|任职|就职|读书|上学)(?!中|时|用)|读(?:大学|研|博|高中|初中|小学))"
    r"|(?:只|没)?有(?:[一两二三四五\d]?[个名位])?(?:大|小)?(?:孩子|女儿|儿子|姐姐|哥哥|弟弟|妹妹|妻子|丈夫|双胞胎))"
)
"""What says who somebody is: name, age, origin, home, work, family; not what they are doing or use at present."""


def category_named(name: str, categories: Collection[str], content: str = "", person: str = "") -> str | None:
    """The category of the settings that a name means, whatever its case; None when it means none.

    `content`, `person`: the fact; `fact` is `identity` where it says who the user is, else `context`.
    """
    clean = one_line(name).casefold()
    if clean == "fact" and clean not in categories:
        clean = "identity" if not person and _WHO.match(content) else DEFAULT_CATEGORY
    names = (clean, ALIASES.get(clean))
    return next((found for found in names if found in categories), None)


def category_or_default(name: str, categories: Collection[str], content: str = "", person: str = "") -> str:
    """The same; an unknown name means DEFAULT_CATEGORY."""
    return category_named(name, categories, content, person) or DEFAULT_CATEGORY
