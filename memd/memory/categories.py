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

_WHO = re.compile(
    r"(?:the )?user(?:'s (?:full |first |last |sur)?(?:name|age|birthday|pronouns?|gender|nationality)\b"
    r"| (?:is|was born|is called|comes from|turns|speaks|uses)\b)"
    r"|用户(?:叫|姓|名叫|是|今年|出生|生于|来自|会说|的(?:名字|姓名|年龄|生日|国籍|性别))",
    re.IGNORECASE,
)


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
