"""Text normalisation: the single line that is stored, and the keys under which two texts count as the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memd.push.width import nfkc

# Scripts whose letters a joiner (U+200C, U+200D) shapes, and the signs that it makes one emoji of.
_JOINED = "\u0590-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_JOINED += "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_INVISIBLE = (
    "[\x00-\x1f\x7f-\x9f\xad\ud800-\udfff]"  # C0 and C1 controls, soft hyphens, lone surrogates
    "|[\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"  # without width, direction of writing
    "|[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u3164\uffa0]"  # joiners and fillers of single scripts
    f"|(?<![{_JOINED}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINED}])"
    "|(?<=[A-Za-z\\s\ufe00-\ufe0f])[\ufe00-\ufe0f]|[\U000e0000-\U000e00ff]"  # variants, which can carry a text; tags
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"  # one may stand behind a character
)
_UNSAFE = re.compile(_INVISIBLE)
_BLANK_ONES = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef"
_PRINTABLE_ONES = re.compile(f"[{_BLANK_ONES}]")
"""Those that Python calls printable; one search of this tells that a line has none."""
_SHAPES = {"‘": "'", "’": "'", **dict.fromkeys("“”„«»", '"'), "\u200b": "", "\ufeff": ""}
"""One shape for quotation marks; characters without width are removed."""

_MARK = re.compile(f"[{''.join(_SHAPES)}]")
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""The ranges of Chinese, Japanese and Korean characters, for a set of a regex."""

# Not letters, digits or meaningful signs; a point or dash counts as meaningful only before a digit.
_PUNCTUATION = re.compile(r"[^\w\s#%&@*/+=<>$€£¥°^|~.,:'−-]|_|[.,:−-](?!\d)")
_ASCII: dict[int, str | None] = {
    code: " " if char in ".,:-" or char.isspace() or _PUNCTUATION.match(char) else char
    for code, char in enumerate(map(chr, range(128)))
}
_ASCII |= {ord("'"): None, ord("\n"): "\n"}
"""The same as a table, for ASCII text without a sign before a digit; ten times as fast."""
_SIGNS_AND_DIGITS: dict[int, str | None] = {
    code: "0" if char.isdigit() else "." if char in ".,:-" else char for code, char in enumerate(map(chr, range(128)))
}
_SIGNS_AND_DIGITS |= {ord("'"): None}
"""Maps every sign to "." and every digit to "0", so that one search finds a sign before a digit."""
_NUMBER = ".0"
_OTHER_SPACE = re.compile(r"[^\S\n ]")
_IS_CJK = re.compile(f"[{CJK}]")
# White space next to a CJK character, which some writers type and others do not.
_GAP = re.compile(f" (?:(?=[{CJK}])|(?<=[{CJK}] ))")


MAX_ASIDE_CHARS = 500
"""Characters of a fact's asides: what was wrong, backstory, person, relationship."""


def one_line(text: str) -> str:
    """The text with white space folded to single spaces and without invisible characters."""
    line = " ".join(text.split())
    if line.isprintable() and (line.isascii() or not _PRINTABLE_ONES.search(line)):
        return line
    return " ".join(_UNSAFE.sub("", line).split())


def aside(text: str) -> str:
    """A text for one of the asides: on one line, cut to MAX_ASIDE_CHARS."""
    return one_line(text)[:MAX_ASIDE_CHARS].strip()


def fold(text: str) -> str:
    """The text for comparing: width (NFKC), case, white space and the shape of quotation marks do not count."""
    return " ".join(_folded(text).split())


def folded_lines(texts: Sequence[str]) -> list[str]:
    """Each text folded (`fold`), without apostrophes: it holds each word that its `normal_key` has."""
    lines = "\n".join(texts).split("\n")
    if len(lines) > len(texts):  # a person has broken a line
        lines = [text.replace("\n", " ") for text in texts]
    others = {place: line for place, line in enumerate(lines) if not line.isascii()}
    for place in others:
        lines[place] = ""  # so that the join is ASCII, which folds in a tenth of the time
    lines = "\n".join(lines).lower().replace("'", "").split("\n")
    folded = _folded("\n".join(others.values())).replace("'", "").split("\n")
    for place, line in zip(others, folded, strict=False):
        lines[place] = line
    return lines[: len(texts)]


def _shape(mark: re.Match[str]) -> str:
    return _SHAPES[mark[0]]


def _folded(text: str) -> str:
    """`fold` without touching white space, so that lines stay lines."""
    if not text.isascii():
        text = _MARK.sub(_shape, text)
        text = nfkc(nfkc(text).casefold())
    return text.casefold()


def names(key: str, person: str) -> bool:
    """Whether the `normal_key` of a sentence names this person, as "mira" or "miras"; in CJK anywhere."""
    name = normal_key(person)
    return bool(name) and (f" {name}" in f" {key}" or (_IS_CJK.search(name) is not None and name in key))


def same_key(content: str) -> str:
    """Two facts with the same key are one (the established system's rule)."""
    return content.strip().casefold()


def normal_key(content: str) -> str:
    """The key of a content: width, case, punctuation and spacing do not count. Equal keys mean equal facts.

    Signs that make a difference stay: those of "C#" and "50%", and a sign before a digit ("1.5", "-3").
    """
    return _keys(content.replace("\n", " "))


def normal_keys(contents: Sequence[str]) -> list[str]:
    """The `normal_key` of each content; batching costs a fifth per content."""
    keys = [content.replace("\n", " ") if "\n" in content else content for content in contents]
    ascii_ones = [place for place, content in enumerate(keys) if content.isascii()]
    signs = "\n".join([keys[place] for place in ascii_ones]).translate(_SIGNS_AND_DIGITS).split("\n")
    plain = [place for place, line in zip(ascii_ones, signs, strict=False) if _NUMBER not in line]
    others = sorted({*range(len(keys))}.difference(plain))
    for group in (plain, others):
        lines = _keys("\n".join([keys[place] for place in group])).split("\n")
        for place, line in zip(group, lines, strict=False):
            keys[place] = line
    return keys


def _keys(text: str) -> str:
    """The key of each line."""
    if text.isascii() and not _has_numbers(text):
        return _stripped(text.lower().translate(_ASCII))
    text = _PUNCTUATION.sub(" ", _folded(text).replace("'", ""))
    return _GAP.sub("", _stripped(_OTHER_SPACE.sub(" ", text)))


def _stripped(text: str) -> str:
    """The lines, trimmed, with single spaces."""
    while "  " in text:
        text = text.replace("  ", " ")
    return text.replace(" \n", "\n").replace("\n ", "\n").strip(" ")


def _has_numbers(text: str) -> bool:
    """Whether any sign comes before a digit; apostrophes do not count."""
    return _NUMBER in text.translate(_SIGNS_AND_DIGITS)
