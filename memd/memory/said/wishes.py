"""Wishes about what was said: to forget it, or to keep it off the record, found by the patterns of `wishes/`.

Only the user's own words count: not what a turn quotes, pastes or shows as code. Each sentence is read by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from memd.memory.said.matter import OF_VERBS, Matter, matters_in
from memd.memory.said.own_words import own_words
from memd.push.patterns import Lists, prepared
from memd.push.prefilter import Prefilter
from memd.push.width import nfkc

Why = Literal["forget_wish", "off_the_record"]
Reach = Literal["", "turn", "earlier", "next", "thread", "everything"]
"""What a wish is about: something that it names, this turn itself, the user's turn before it, the one after it, all
turns of the thread, or all that is known of the user.
"""

Switch = Literal["", "on", "off"]

_ORDER = ("thread", "next", "earlier", "back", "off", "unkept", "forget")
"""The lists of wishes; of several in one turn the first in this order counts, after `everything` and `named`."""

_COUNTS = {"two": 2, "three": 3, "four": 4}
"""The lists of words that say how many turns back a wish reaches."""

_LISTS = Lists(
    Path(__file__).parent / "wishes",
    *("harmless", "excuses", "verbs", "reports", "keeps", "polite", *_COUNTS),
)

_QUOTED = re.compile(
    r"\"[^\"\n]{1,300}\"|(?<!\w)'[^'\n]{2,200}'(?!\w)|「[^」\n]{1,300}」|『[^』\n]{1,300}』|《[^》\n]{1,80}》|«[^»\n]{1,300}»"
)
_QUOTE = re.compile("[\"'「『《«]")
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:\.(?=\w)[^.!?。！？\n]*)*[.!?。！？]*")
_BREAK = re.compile(r"[,;:.!?，；：。！？\n–—]")
_MAX_CLAUSE = 120
"""Characters at most before and behind a wish that belong to its clause."""

_QUOTES = str.maketrans({"‘": "'", "’": "'", "`": "'", **dict.fromkeys("“”„", '"')})
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile("[\u3400-\u9fff]")
_GOES_ON = re.compile(
    r"\W*(?:[a-zà-ÿ]|(?i:and|also|same|likewise|especially|plus|including|und|auch|ebenso|et|aussi|y|también)\b"
    r"|还有|也|以及|包括|连|[^.!?。！？\n]{0,80}(?i:\bi mean\b|\btoo\b|\bas well\b|也一样|也是|也别))"
)
"""A sentence behind a wish that may name more of what is to be forgotten."""

_QUESTION = re.compile(r"\?\W*$|[吗嗎呢]\W*$")


_COLON = ":： "
_INTRODUCES = re.compile(
    r"\s?(?:down|下来)?(?:的(?:一句|这句|话|事|是)*)?\s?[:：]\s*(?:i|we|ich|wir|我们?)(?![a-z])"
    r"(?![^.!?。！？\n]{0,120}(?:know|read|find|see\b|tell|want|afraid|知道|看到|发现|告诉|想让|不想|怕|wissen|lesen|sehen|will))"
)
"""Behind "don't save this" a colon and what the user tells: then it is about that. A reason is none ("my wife reads
this", "I don't want anybody to know"): then it is about what stands before."""

_CONNECTS = re.compile(r"\W*(?:(?:and|but|also|oh|so|btw|und|y|et|还有|另外|对了)\W*)?")
"""Before a wish that opens its sentence."""

LOOK_AT = 7_000
"""Characters at each end of a text that are read for wishes; a longer one is mostly pasted."""


class AskedNot(NamedTuple):
    """A user's wish about what was said."""

    why: Why
    reach: Reach
    matters: tuple[Matter, ...] = ()
    """What it names; with any, the turns that hold it go, and `reach` is for the case that none shares a word of it."""

    turns: int = 1
    """The user's turns before it that go, where it reaches them."""

    rest: int = 0
    """Characters at the turn's start that it is not about: sentences before one that opens with it."""

    kept: str = ""
    """The sentence of which the turn says, behind its wishes, that it is to be kept all the same."""

    switch: Switch = ""
    """Whether from here on nothing is to be kept ("incognito on"), or no longer so."""

    @property
    def own(self) -> bool:
        """Whether the turn itself must prove nothing."""
        return self.why == "off_the_record" or self.reach in ("turn", "thread")


class _Pattern:
    """A pattern of a list, compiled when first tried."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self._source = source

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._source)


@prepared
def _prefilter() -> Prefilter[_Pattern]:
    names = ("everything", "named", "on", "off_again", *_ORDER)
    return Prefilter((source, _Pattern(name, source)) for name in names for source in _LISTS.sources(name))


@prepared
def _inverted() -> tuple[_Pattern, ...]:
    return tuple(_Pattern("named", source) for source in _LISTS.sources("inverted"))


@prepared
def _compile_all() -> None:
    for pattern in (*_prefilter().all(), *_inverted()):
        _ = pattern.compiled


def wish_of(text: str) -> AskedNot | None:
    """The wish in a turn of the user; None when there is none."""
    words, found = _looked_at(text)
    wish = _wish(words, _firsts(found))
    if wish is None or not wish.own or wish.reach != "turn" or wish.switch:
        return wish
    return wish._replace(rest=_rest(text, words, found), kept=_kept(text, words, found))


def _rest(text: str, words: str, found: Sequence[_Found]) -> int:
    """The end of the sentences before the first wish, where it opens its sentence and what it is about comes after."""
    first = found[0]
    if (
        first.name not in ("off", "unkept", "next")
        or (first.name == "unkept" and not _INTRODUCES.match(words, len(words[: first.end].rstrip(_COLON))))
        or len(words) != len(text)
        or not _says_something(lowered(text)[first.end :])  # also what reads like a pasted text
    ):
        return 0
    start = max((one.end() for one in _SENTENCE.finditer(words, 0, first.start) if one.end() <= first.start), default=0)
    opens = _CONNECTS.fullmatch(words, start, first.start) is not None
    return len(words[:start].rstrip()) if opens and _says_something(words[:start]) else 0


def _kept(text: str, words: str, found: Sequence[_Found]) -> str:
    keeps = _LISTS["keeps"].search(words, max(0, found[-1].end - 1)) if len(words) == len(text) else None
    told = _SENTENCE.match(words, keeps.end()) if keeps else None
    return text[told.start() : told.end()].strip() if told and _says_something(told[0]) else ""


def behind_wishes(text: str) -> str:
    """What a turn says after the last sentence with a wish, which points back; "" where that cannot be told."""
    words, found = _looked_at(text)
    if not found or len(words) != len(text):
        return ""
    if kept := _kept(text, words, found):
        return kept
    last = max(one.end for one in found)
    behind = text[next((one.end() for one in _SENTENCE.finditer(words) if one.end() >= last), len(text)) :]
    return "" if _GOES_ON.match(behind) else behind


def says_more_than_a_wish(quote: str, turn: str) -> bool:
    """Whether a quote of a turn says something besides the turn's wishes and what is to be forgotten of the turn."""
    words, found = _looked_at(turn)
    quoted = lowered(quote)
    place = lowered(_ends(turn)).find(quoted)
    return place < 0 or _says_something(_left_of(words, found)[place : place + len(quoted)])


def _left_of(words: str, found: Sequence[_Found]) -> str:
    """A turn's words without its wishes, and without the sentences before them that hold what they name."""
    left = words
    for one in found:
        start, end = _clause_start(words, one.start), _clause_end(words, one.end)
        left = left[:start] + " " * (end - start) + left[end:]
        for told in _SENTENCE.finditer(words, 0, one.start) if one.matters else ():
            if any(matter.held_by(told[0]) for matter in one.matters):
                left = left[: told.start()] + " " * len(told[0]) + left[told.end() :]
    return left


def sentences_of(quote: str, turn: str) -> str:
    """The user's own words in the sentences of a turn that a quote of it stands in; empty where it is none."""
    words = lowered(_ends(turn))
    place = _place(quote, words)
    if place is None:
        return ""
    words = _own(turn, words)
    held = [one for one in _SENTENCE.finditer(words) if one.start() < place.end() and place.start() < one.end()]
    return words[held[0].start() : held[-1].end()] if held else ""


def without_harmless(words: str) -> str:
    """Folded words with the phrases blanked out that are no wish, whatever words of one they hold."""
    return _LISTS["harmless"].sub(_gap, words)


def wishes_in(turn: str) -> list[tuple[str, tuple[Matter, ...]]]:
    """For each wish in a turn the user's words after its sentence, folded, and what it names; () where it points."""
    words, found = _looked_at(turn)
    ends = [sentence.end() for sentence in _SENTENCE.finditer(words)] if found else []
    wishes = [(next(end for end in ends if end > one.start), _matters(words, one)) for one in found]
    naming = {end for end, matters in wishes if matters}  # in such a sentence other patterns match the same wish
    return [(words[end:], matters) for end, matters in wishes if matters or end not in naming]


def stands_in(quote: str, words: str) -> bool:
    """Whether folded words hold a quote, whatever white space stands between its words."""
    return _place(quote, words) is not None


def _place(quote: str, words: str) -> re.Match[str] | None:
    parts = list(map(re.escape, lowered(quote).split()))
    return re.search(r"\s+".join(parts), words) if parts else None


def tells_of_a_wish(content: str) -> bool:
    """Whether a fact's sentence only tells that the user wants something forgotten, or not kept."""
    return _LISTS["reports"].search(lowered(content)) is not None


def _looked_at(text: str) -> tuple[str, list[_Found]]:
    """The user's own words in a turn, and every match of a wish in them, in their order."""
    prefilter = _prefilter()
    folded = lowered(_ends(text))
    if not prefilter.finds(folded):
        return "", []
    words = _own(text, folded)
    literals = prefilter.literals_in(words)
    found: list[_Found] = []
    for match in _SENTENCE.finditer(words) if prefilter.could_match(literals) else ():
        sentence = match[0].lstrip()  # patterns anchor at its first word
        tried = set(prefilter.select_part(literals, sentence))
        if tried and not _LISTS["verbs"].search(sentence):
            tried = {pattern for pattern in tried if pattern.name != "named"}
        likely = [pattern for pattern in tried if pattern.compiled.search(sentence)]
        if likely:
            likely += [pattern for pattern in _inverted() if pattern.compiled.search(sentence)]
        said = _LISTS["harmless"].sub(_gap, sentence) if likely else ""
        for pattern in likely:
            place = pattern.compiled.search(said)
            if place and (one := _found(pattern.name, place, match.end() - len(sentence))):
                found.append(one)
    found = [one for one in found if one.name != "everything" or (words == folded and _is_all(one, words))]
    return words, sorted(found, key=lambda one: (one.start, one.end, one.name))


def _is_all(one: _Found, words: str) -> bool:
    """Whether a turn says nothing but this; what frames a wish to forget everything may turn it into anything."""
    rest = _LISTS["polite"].sub(" ", f"{words[: one.start]} {words[one.end :]}")
    return _WORD.search(rest) is None


def _own(text: str, folded: str) -> str:
    """The user's own words in a text, folded, with everything else blanked out. `folded`: its ends, folded."""
    own = own_words(text)
    words = folded if own == text else lowered(_ends(own))
    return _QUOTED.sub(_gap, words) if _QUOTE.search(words) else words


def _firsts(found: list[_Found]) -> dict[str, _Found]:
    """By list the first match, with the matters of all of its matches."""
    firsts: dict[str, _Found] = {}
    for one in found:
        firsts[one.name] = firsts[one.name].with_(one) if one.name in firsts else one
    return firsts


class _Found(NamedTuple):
    """Where a list of patterns matches a turn, and the matters that it names."""

    name: str
    start: int
    end: int
    matters: tuple[Matter, ...] = ()

    def with_(self, other: _Found) -> _Found:
        """This with the matters of another match; the place is that of the earlier one."""
        first = min(self, other, key=lambda one: one.start)
        return first._replace(matters=tuple(dict.fromkeys((*self.matters, *other.matters))))


def _found(name: str, match: re.Match[str], start: int) -> _Found | None:
    """A match in a sentence that begins at `start`; None for one of `named` that names no matter."""
    matters: list[Matter] = []
    if name == "named":
        groups = match.groupdict()
        named = groups.get("matter") or groups.get("clause") or ""
        matters = matters_in(named, whole=not groups.get("matter"))
        if not matters:  # 忘掉 and 忘记 point, where nothing but their own verb is left
            return _Found("back", start + match.start(), start + match.end()) if OF_VERBS & set(named) else None
    return _Found(name, start + match.start(), start + match.end(), tuple(matters))


def _wish(words: str, found: dict[str, _Found]) -> AskedNot | None:
    """The wish in a turn with these words."""
    switch: Switch = ""
    if switches := {found[name].start: name for name in ("on", "off_again") if name in found}:
        switch = "on" if switches[max(switches)] == "on" else "off"
        return AskedNot("off_the_record", "turn", switch=switch)
    if "everything" in found:
        return AskedNot("forget_wish", "everything")
    named = found.get("named")
    if named is not None and "next" not in found and not _is_wider(found.get("thread"), named):
        return _about(words, found, named)
    name = next((name for name in _ORDER if name in found), None)
    return None if name is None else _pointing(name, words, found)


def _is_wider(thread: _Found | None, named: _Found) -> bool:
    """Whether a wish for the whole thread is another one than that which names its matter."""
    return thread is not None and (thread.end <= named.start or named.end <= thread.start)


def _about(words: str, found: dict[str, _Found], named: _Found) -> AskedNot:
    """The wish that names its matters; a turn that says nothing else than what they are must prove nothing."""
    why: Why = "off_the_record" if "off" in found else "forget_wish"
    told = any(matter.held_by(words[: named.start]) for matter in named.matters)
    if told and not _says_something(_left_of(words, list(found.values()))):
        return AskedNot(why, "turn", named.matters)
    return AskedNot(why, "earlier" if "earlier" in found else "", named.matters)


def _pointing(name: str, words: str, found: dict[str, _Found]) -> AskedNot:
    """The wish of this list, in a turn with these words."""
    _, start, end, _ = found[name]
    before, after = _says_something(words[:start]), _says_something(words[end:])
    why: Why = "off_the_record" if "off" in found else "forget_wish"
    match name:
        case "forget":
            return AskedNot("forget_wish", "", _matters(words, found[name]))
        case "thread":
            return AskedNot(why, "thread")
        case "next":
            return AskedNot("off_the_record", "turn" if before or after else "next")
        case "unkept" if before or after:
            return AskedNot(why if before and not after else "off_the_record", "turn")
        case "off" if before or after:
            return AskedNot(why, "turn")
        case "back" if before:
            return AskedNot(why, "turn")
    return AskedNot(why, "earlier", turns=_turns(words[start:end]))


def _matters(words: str, one: _Found) -> tuple[Matter, ...]:
    """What a match names; for one of `forget` the words of its clause do."""
    if one.name != "forget":
        return one.matters
    clause = words[_clause_start(words, one.start) : _clause_end(words, one.end)]
    return tuple(matters_in(_LISTS["verbs"].sub(_gap, clause), whole=False))


def _clause_start(words: str, place: int) -> int:
    return max((match.end() for match in _BREAK.finditer(words, max(0, place - _MAX_CLAUSE), place)), default=0)


def _clause_end(words: str, place: int) -> int:
    found = _BREAK.search(words, place, place + _MAX_CLAUSE)
    return found.start() if found else min(len(words), place + _MAX_CLAUSE)


def _turns(wish: str) -> int:
    """How many turns back a wish with these words reaches."""
    return next((count for name, count in _COUNTS.items() if _LISTS[name].search(wish)), 1)


def _says_something(part: str) -> bool:
    """Whether these words beside a wish state anything: two words or three CJK characters, and no question."""
    said = [sentence for sentence in _SENTENCE.findall(part) if not _QUESTION.search(sentence)]
    words = _LISTS["excuses"].sub(" ", " ".join(said))
    return 3 * len(_WORD.findall(_CJK.sub(" ", words))) + 2 * len(_CJK.findall(words)) >= 6


def _ends(text: str) -> str:
    """The text without the middle of a very long one."""
    return text if len(text) <= 2 * LOOK_AT else f"{text[:LOOK_AT]}\n{text[-LOOK_AT:]}"


def _gap(match: re.Match[str]) -> str:
    return " " * len(match[0])


def lowered(text: str) -> str:
    """The text in lower case and one width."""
    if not text.isascii():
        text = nfkc(text.translate(_QUOTES))
    return text.lower()
