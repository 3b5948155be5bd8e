"""Reads one English sentence: checks that it is plain, splits it into clauses, and applies the rules to each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from memd.extraction.offline.rules_en import ENDINGS, RULES
from memd.extraction.offline.sentences import MASK
from memd.extraction.offline.statements import MAX_VALUE_CHARS, Rule, Statement, statement_by
from memd.push.prefilter import Prefilter

# A question appended to a statement: "I'm allergic to nuts, so which bars can I eat?"
_TIED_QUESTION = re.compile(
    r",?\s+(?:so|and|but)[ ,]+"
    r"(?:which|what|how|where|when|who|can|could|do|does|is|are|should|would|will|any)\b[^.!?]*\?\s*$",
    re.I,
)
# Not a plain statement: a question, condition, wish, doubt, or reported speech.
_EXCLUDED = re.compile(
    r"\?\s*$|\b(?:if|unless|suppose|supposing|imagine|let's say|what if|would|wouldn't|i'd|wish|wished|hypothetically"
    r"|as though|maybe|might|perhaps|probably|possibly|could|whether|says?|said|told|asks?|asked|wrote|writes|claims?"
    r"|claimed|lyrics?|for example|for instance|e\.g\.|character|pretend|joke|kidding|not sure|i guess|used to)\b",
    re.I,
)
_LEAD = re.compile(
    r"(?:(?:hi|hello|hey|hiya|well|okay|ok|oh|ah|so|and|but|also|btw|by the way|actually|no|nope|nah|sorry|yes|yeah|yep"
    r"|right|correction|wait|wrong|not quite|fyi|for context|for the record|just so you know|for your information"
    r"|please note(?: that)?|note(?: that)?|(?:please )?remember(?: that)?|i mean|i meant|as i said|thanks|thank you"
    r"|(?:big |good |quick |small )?(?:news|update)|something else|something different|next|great|good|perfect|cool"
    r"|ps|p\.s\.|one more thing|another thing|to be clear|these days|at work|at home|then|there|everyone|all"
    r"|that's wrong|that's not right|from now on(?= (?:i|my)\b)|as of (?:today|this week|last week)"
    r"|(?:last|this) (?:week|month|year|spring|summer|autumn|fall|winter))(?:[\s,:!.–—-]+|$))*",
    re.I,
)
_CORRECTING = re.compile(r"\b(?:no|nope|nah|sorry|correction|wait|wrong|not quite|actually|i meant|not right)\b", re.I)
_CLAUSE = re.compile(
    r"(?:,\s*|;\s*|\s+[-–—]+\s*|\s+)(?:(?:and|but|so|also|yet)\s+)(?=(?:i|i'm|i've|my|we|we've)\b)"
    r"|(?:,|;|\s[-–—]+|[–—])\s*(?=(?:i|i'm|i've|my|we|we've|please|call me|you can call me)\b)"
    r"|\s+and\s+(?=please\b)",
    re.I,
)
_ELIDED = re.compile(
    r",?\s+and\s+(?=(?:also |now |currently |mostly |usually )*"
    r"(?:work (?:at|for|as|in)|live in|use|love|like|prefer|hate|speak|enjoy|don't (?:like|eat|drink))\b)",
    re.I,
)
_NOT = re.compile(r",?\s+(?:and )?not (?:in |at |for |to |as |on )?([^,.!]{1,60})[.!\s]*$", re.I)
_CUT_SHORT = re.compile(
    r"\s+(?:and|but|because|since|so|which|where|who|while|although|though|as|with|after|before|for"
    r"|together|last|this|next|two|three|a (?:few|couple)|in (?:january|february|march|april|may|june|july|august"
    r"|september|october|november|december|\d{4}))\s"
)
_CUT_LONG = re.compile(r",?\s+(?:but|because|since|so that|so|although|though|which)\s|\s[-–—]+\s|[:;(]")
_FILLER = re.compile(
    r",?\s+(?:now|nowadays|currently|these days|at the moment|right now|too|as well|btw|by the way|though|anyway|please"
    r"|actually|by now|already|lol|haha|thanks|thank you|instead|from now on|at present|originally|anymore|any more"
    r"|a lot|very much|so much|every day|again|in (?:the )?future|going forward|yesterday|recently"
    r"|(?:last|this) (?:week|month|year|spring|summer|autumn|fall|winter))$",
    re.I,
)
_VAGUE = re.compile(
    r"(?:it|this|that|these|those|them|they|you|your|yours|him|her|he|she|how|what|when|where|the|there|here|one|ones"
    r"|some(?:thing|one)?|any(?:thing|one)?|everything|nothing|neither|both|either|such|more|less|all|know|see|ask|say"
    r"|an? (?:idea|answer|one|lot|bit|few|suggestion|approach|living|while)|my (?:own|idea|suggestion))\b",
    re.I,
)
# Refers to the conversation or the day, or negates itself.
_BAD_INSIDE = re.compile(
    r"\b(?:i|i'm|i've|you|your|not|no longer|anymore|here|it|this|these|those|today|tonight|tomorrow)\b",
    re.I,
)
_CONDITION = re.compile(r"\b(?:when|whenever|until|till|as long as|except)\b", re.I)
_MINE = {
    "we": "they",
    "my": "their",
    "our": "their",
    "me": "them",
    "us": "them",
    "mine": "theirs",
    "myself": "themselves",
}
_FIRST_PERSON = re.compile(r"\b(we|my|our|me|us|mine|myself)\b", re.I)
_TRAILING = re.compile(r"[^\w+#%€$£°]+$")
_LEADING = re.compile(r"^[\s\"'`*_~(,:–—-]+")
_MEANT = re.compile(r"(?:i meant|i mean|it's|it is|that should be|it should be|make that) ([^,.!]{1,60})", re.I)
_NOT_BUT = re.compile(
    r"(?:i meant |it's |it is )?not ([^,.!]{1,60}?)(?:,|,? but) (?:it's |it is )?([^,.!]{1,60})[.!\s]*$", re.I
)

_Possible = set[str | int]
"""The patterns (by name) and rules (by number) that could match a sentence, by their required literals."""

_PREFILTER: Prefilter[str | int] = Prefilter(
    [
        (_TIED_QUESTION.pattern, "tied_question"),
        (_EXCLUDED.pattern, "excluded"),
        (_CLAUSE.pattern, "clause"),
        (_ELIDED.pattern, "elided"),
        (_NOT.pattern, "not"),
        (_NOT_BUT.pattern, "not_but"),
        (_MEANT.pattern, "meant"),
        *((pattern.pattern, "over") for _, pattern in ENDINGS),
        *((rule.pattern.pattern, number) for number, rule in enumerate(RULES)),
    ],
    folded=True,
)
_STATES = Prefilter(
    [
        *((pattern.pattern, None) for pattern in (_ELIDED, _NOT_BUT, _MEANT)),
        *((pattern.pattern, None) for _, pattern in ENDINGS),
        *((rule.pattern.pattern, None) for rule in RULES),
    ],
    folded=True,
)
"""Prefilter: every sentence with a statement contains one of these literals."""

MIN_CHARS = len("I use R")


def may_state(sentence: str) -> bool:
    """Whether a sentence could hold a statement: it has a literal that one of the rules requires."""
    return len(sentence) >= MIN_CHARS and _STATES.could_match(_STATES.literals_in(_normal(sentence)))


def read(sentence: str, *, corrects: bool = False) -> list[Statement]:
    """The plain statements of one sentence. `corrects`: the previous sentence was a bare "No."."""
    text = _normal(sentence)
    possible = _PREFILTER.select(text)
    if "tied_question" in possible:
        text = _TIED_QUESTION.sub("", text)
    if "excluded" in possible and _EXCLUDED.search(text):
        return []
    lead = _LEAD.match(text)
    start = lead.end() if lead else 0
    corrects = corrects or _CORRECTING.search(text[:start]) is not None
    body = text[start:].rstrip(" .!;~…。！；")
    return list(_statements(body, corrects, possible)) or list(_corrections(text, body, corrects, possible))


def _normal(sentence: str) -> str:
    return " ".join(sentence.replace("’", "'").replace("`", "").split())


def is_bare_no(sentence: str) -> bool:
    """Whether the whole sentence is a "no" that the next sentence explains."""
    lead = _LEAD.match(sentence)
    return lead is not None and lead.end() == len(sentence) and _CORRECTING.search(sentence) is not None


def _statements(body: str, corrects: bool, possible: _Possible) -> Iterator[Statement]:
    wrong = _NOT.search(body) if "not" in possible else None
    body = body[: wrong.start()] if wrong else body
    for clause, rules in _clauses(body, possible):
        for ended, pattern in ENDINGS if "over" in possible else ():
            if (match := pattern.fullmatch(clause)) and (value := _value(match[1], long=False)):
                yield Statement("over", ended, "", value=value)
        for rule in rules:
            if (match := rule.pattern.fullmatch(clause)) and (statement := _statement(rule, match)):
                yield _corrected(statement, wrong) if corrects or wrong else statement
                break


def _corrected(statement: Statement, wrong: re.Match[str] | None) -> Statement:
    return replace(statement, corrects=True, wrong=_tidy(wrong[1]) if wrong else "")


def _clauses(body: str, possible: _Possible) -> Iterator[tuple[str, list[Rule]]]:
    """Each clause with the rules that could match it, in their order."""
    rules = _rules(possible)
    for clause in _CLAUSE.split(body) if "clause" in possible else [body]:
        lead = _LEAD.match(clause)
        rest = clause[lead.end() :] if lead else clause
        first, *others = _ELIDED.split(rest) if "elided" in possible else [rest]
        yield first.strip(" ,"), rules
        if others and re.match(r"i\b", first, re.I):
            for other in others:
                spoken = f"I {other}".strip(" ,")
                yield spoken, _rules(_PREFILTER.select(spoken))


def _rules(possible: _Possible) -> list[Rule]:
    return [RULES[number] for number in sorted(each for each in possible if isinstance(each, int))]


def _statement(rule: Rule, match: re.Match[str]) -> Statement | None:
    """The statement of a rule that matched; None when its value is not plain."""
    value = _value(match[2] if rule.kin else match[1], long=rule.long)
    return statement_by(rule, value, match[1].lower() if rule.kin else "")


def _value(raw: str, *, long: bool) -> str:
    """The value without trailing clauses and filler; empty when it is vague, not the user's own words, or too long."""
    value = _tidy(_cut_long(raw) if long else _cut_short(raw))
    while match := _FILLER.search(value):
        value = _tidy(value[: match.start()])
    if not value or len(value) > MAX_VALUE_CHARS or MASK in raw or _VAGUE.match(value) or _BAD_INSIDE.search(value):
        return ""
    if not long and _CONDITION.search(raw):
        return ""
    return _FIRST_PERSON.sub(lambda match: _MINE[match[1].lower()], value)


def _tidy(value: str) -> str:
    return _TRAILING.sub("", _LEADING.sub("", value))


def _cut_short(raw: str) -> str:
    """Up to the first connector. "and" or a comma before a capital letter belongs to the name of a place."""
    for match in _CUT_SHORT.finditer(raw):
        if match[0].strip() == "and" and raw[match.end() : match.end() + 1].isupper():
            continue
        raw = raw[: match.start()]
        break
    head, comma, tail = raw.partition(",")
    tail = tail.strip()
    return f"{head}, {tail}" if comma and tail[:1].isupper() and len(tail.split()) <= 3 else head


def _cut_long(raw: str) -> str:
    """Up to the first connector. Commas stay when they separate the items of a list."""
    match = _CUT_LONG.search(raw)
    raw = raw[: match.start()] if match else raw
    *items, last = raw.split(",")
    is_list = re.search(r"\b(?:and|or)\b", last) and len(last.split()) <= 6
    return raw if is_list or not items else items[0]


def _corrections(text: str, body: str, corrects: bool, possible: _Possible) -> Iterator[Statement]:
    """Corrections: "I meant X, not Y", "not Y but X", "no, I meant X"."""
    if "not_but" in possible and (match := _NOT_BUT.match(body)):
        wrong, right = _tidy(match[1]), _tidy(match[2])
    elif "meant" in possible and (match := _MEANT.match(text[_skip_no(text) :].strip())):
        rest = _NOT.search(text)
        wrong, right = (_tidy(rest[1]) if rest else ""), _tidy(_NOT.sub("", match[1]))
        if not rest and not (corrects and re.match(r"i mean", match[0], re.I)):
            return
    else:
        return
    if right and MASK not in text and not _VAGUE.match(right) and not _VAGUE.match(wrong or "x"):
        firm = re.search(r"\bi meant?\b", text, re.I) is not None
        content = f"The user meant {right}, not {wrong}." if wrong else f"The user meant {right}."
        yield Statement("correction", content if firm else "", "correction", value=right, corrects=True, wrong=wrong)


def _skip_no(text: str) -> int:
    match = re.match(r"(?:(?:no|nope|sorry|wait|actually|correction|oh|ah)[\s,:!.–—-]+)*", text, re.I)
    return match.end() if match else 0
