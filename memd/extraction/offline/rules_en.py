"""The rules for plain statements in English, with the word lists that accept or refuse a value.

A pattern must match a whole clause, from its subject on. `%` in a pattern means optional adverbs.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from memd.extraction.offline.statements import Rule, words

_ADVERB = (
    r"(?:(?:now|currently|just|recently|still|also|actually|mostly|usually|always|really|generally|normally|mainly"
    r"|typically|personally|absolutely|much|very|strongly|already|finally|both|quite) )*"
)
_KIN = (
    r"((?:(?:older|younger|little|big|eldest|youngest|best|new) )?(?:daughter|son|wife|husband|partner"
    r"|girlfriend|boyfriend|fianc[ée]e?|mother|mom|mum|father|dad|sister|brother|boss|manager|dog|cat|puppy|kitten"
    r"|baby|niece|nephew|grandson|granddaughter|grandmother|grandfather|roommate|flatmate|colleague|friend))"
)
_COUNTED = (
    r"(?:an?|one|two|three|four|five|six|\d{1,2}) (?:(?:young|little|small|grown-up|teenage) )?"
    r"(?:kids?|child|children|daughters?|sons?|dogs?|cats?|sisters?|brothers?|siblings?|twins|rabbits?|chickens)"
)
_GOAL_VERBS = (
    r"(?:learn|become|move|run|travel|visit|quit|lose|save|study|retire|exercise|get (?:better|fit)|read more"
    r"|open a|start a|launch|finish my|write a (?:book|novel|thesis)|buy a (?:house|flat|car|home)) "
)
_DIETS = (
    r"((?:an? )?(?:vegetarian|vegan|pescatarian|lactose[ -]intolerant|gluten[ -]intolerant|co?eliac|diabetic"
    r"|colou?r[ -]?blind|left-handed|dyslexic|deaf|blind))"
)
_TONES = (
    r"((?:short|brief|concise|simple|detailed|formal|informal|plain)"
    r"(?:(?:,| and|, and) (?:short|brief|concise|simple|plain))?)"
)
_HABITS = r"(emojis?|bullet points|bullets|tables|jargon|exclamation marks|markdown|headings|small talk)"
_NO = r"(?:don't|do not|can't|cannot|never)"

LANGUAGES = words(
    """english chinese mandarin cantonese spanish portuguese french german italian japanese korean russian arabic hindi
    bengali urdu turkish dutch polish swedish norwegian danish finnish greek hebrew thai vietnamese indonesian malay
    ukrainian czech hungarian romanian catalan swahili persian farsi tamil simplified traditional british american
    brazilian"""
)
JOBS = words(
    """engineer developer programmer designer teacher nurse doctor physician surgeon dentist lawyer attorney paralegal
    accountant bookkeeper manager analyst scientist researcher student writer author journalist editor translator
    interpreter architect consultant chef cook baker barista waiter waitress bartender driver pilot mechanic
    electrician plumber carpenter farmer gardener florist pharmacist veterinarian vet psychologist therapist
    physiotherapist professor lecturer librarian photographer illustrator animator artist musician singer actor
    director producer founder ceo cto cfo entrepreneur freelancer contractor salesperson marketer recruiter
    administrator sysadmin technician operator paramedic firefighter officer soldier economist biologist chemist
    physicist mathematician statistician geologist historian archaeologist midwife caregiver nanny tutor coach
    trainer broker banker trader actuary auditor secretary assistant receptionist clerk tailor hairdresser potter
    beekeeper postdoc intern apprentice tester"""
)
_NO_NAMES = words("not a an the back when if at on tomorrow later again it what maybe crazy old")
_NO_PLACES = words(
    """linux windows mac macos ubuntu debian vim neovim emacs kubernetes docker postgres postgresql mysql redis python
    rust go java typescript javascript react vue aws azure gcp github gitlab notion slack chrome firefox android ios
    vs vscode"""
)
_HOME = re.compile(
    r"(?:an?|the) (?:\w+ ){0,3}(?:city|town|village|farm|house|flat|suburbs?|countryside|apartment|dorm|boat|island"
    r"|cent(?:re|er)|mountains)\b"
)
_FIELD_NOT = re.compile(r"(?:an?|the|my|our|this|that|it|here|there|progress|general|parallel|pairs)\b", re.I)


def _is_proper(value: str) -> bool:
    return value[0].isupper() or not value.isascii()


def _is_place(value: str) -> bool:
    return _is_proper(value) and value.split(maxsplit=1)[0].rstrip(",").lower() not in _NO_PLACES


def _is_home(value: str) -> bool:
    return _is_proper(value) or _HOME.match(value) is not None


def _is_name(value: str) -> bool:
    words = value.split()
    return len(words) <= 4 and words[0].lower() not in _NO_NAMES and not re.search(r"[\d,;:/]", value)


def _is_given_name(value: str) -> bool:
    return _is_name(value) and _is_proper(value)


def _is_employer(value: str) -> bool:
    return _is_proper(value) or value.startswith(("a ", "an "))


def _is_job(value: str) -> bool:
    head = re.split(r" (?:at|in|for|with|from|on|of)\b", value, maxsplit=1)[0]
    return head.split()[-1].lower() in JOBS


def _is_language(value: str) -> bool:
    return value.split(maxsplit=1)[0].lower().strip(",") in LANGUAGES


def _is_language_always(value: str) -> bool:
    return _is_language(value) and " when " not in value


def _is_language_sometimes(value: str) -> bool:
    return _is_language(value) and " when " in value


def _is_diet(value: str) -> bool:
    return re.fullmatch(_DIETS, value, re.I) is not None


def _is_field(value: str) -> bool:
    return _FIELD_NOT.match(value) is None


def _single(kind: str, category: str, pattern: str, template: str, accept: Callable[[str], bool] | None = None) -> Rule:
    """A rule for statements that hold for one value at a time."""
    return Rule(kind, _compiled(pattern), template, category, single=True, accept=accept)


def _many(kind: str, category: str, pattern: str, template: str, accept: Callable[[str], bool] | None = None) -> Rule:
    """A rule for statements that hold together with others of their kind; the value may be a phrase."""
    return Rule(kind, _compiled(pattern), template, category, long=True, accept=accept)


def _kin(pattern: str) -> Rule:
    template = "The user's {1} is called {0}."
    return Rule("kin", _compiled(pattern), template, "identity", accept=_is_given_name, kin=True)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("%", _ADVERB), re.I)


RULES = (
    _single("residence", "identity", r"i %live in (.+)", "The user lives in {0}.", _is_home),
    _single("residence", "identity", r"i(?:'m| am) %(?:living|based) in (.+)", "The user lives in {0}.", _is_home),
    _single(
        "residence",
        "identity",
        r"i(?:(?:'ve| have))? %(?:moved|relocated) (?:back )?(?:from [^,]{1,60} )?to (.+)",
        "The user moved to {0}.",
        _is_place,
    ),
    _single("name", "identity", r"my (?:full )?name(?:'s| is) (.+)", "The user's name is {0}.", _is_name),
    _single(
        "nickname",
        "identity",
        r"(?:please |you can |just )*call me (.+)",
        "The user wants to be called {0}.",
        _is_given_name,
    ),
    _single("nickname", "identity", r"i %go by (.+)", "The user wants to be called {0}.", _is_given_name),
    _single("employer", "identity", r"i %work at (.+)", "The user works at {0}.", _is_employer),
    _single("employer", "identity", r"i %work for (.+)", "The user works for {0}.", _is_employer),
    _single("employer", "identity", r"i(?:'m| am) %working at (.+)", "The user works at {0}.", _is_employer),
    _single("employer", "identity", r"i(?:'m| am) %working for (.+)", "The user works for {0}.", _is_employer),
    _single("employer", "identity", r"i(?:(?:'ve| have))? %joined (.+)", "The user works at {0}.", _is_place),
    _single("employer", "identity", r"i %started (?:working )?at (.+)", "The user works at {0}.", _is_place),
    _single("job", "identity", r"i %work as ((?:an? |the )?.+)", "The user works as {0}.", _is_job),
    _single("job", "identity", r"i(?:'m| am) %((?:an?|the) .+)", "The user is {0}.", _is_job),
    _many("field", "context", r"i %work in (.+)", "The user works in {0}.", _is_field),
    _single("origin", "identity", r"i(?:'m| am) %(?:originally )?from (.+)", "The user is from {0}.", _is_place),
    _single("origin", "identity", r"i %(?:grew up|was born) in (.+)", "The user is from {0}.", _is_place),
    _single("birthday", "identity", r"my birthday(?:'s| is) (?:on )?(.+)", "The user's birthday is {0}."),
    _single("age", "identity", r"i(?:'m| am) %(\d{1,3}) years old", "The user is {0} years old."),
    _single(
        "mother_tongue",
        "identity",
        r"my (?:native|first) language is (.+)",
        "The user's first language is {0}.",
        _is_language,
    ),
    _single(
        "mother_tongue", "identity", r"my mother tongue is (.+)", "The user's first language is {0}.", _is_language
    ),
    _many("speaks", "identity", r"i %speak (.+)", "The user speaks {0}.", _is_language),
    _kin(rf"my {_KIN}(?: is|'s) (?:called|named) (.+)"),
    _kin(rf"my {_KIN}'s name is (.+)"),
    _kin(rf"(?:i|we)(?:'ve| have)? (?:have |got )?an? {_KIN} (?:called|named) (.+)"),
    _many("household", "identity", rf"(?:i|we)(?:'ve got| have| have got) ({_COUNTED})", "The user has {0}."),
    _many("preference", "preference", r"i %prefer (.+)", "The user prefers {0}."),
    _many("taste", "preference", r"i %(?:like|enjoy) (.+)", "The user likes {0}."),
    _many("taste", "preference", r"i %love (.+)", "The user loves {0}."),
    _many("taste", "preference", r"i %(?:don't|do not|no longer) %(?:like|enjoy) (.+)", "The user does not like {0}."),
    _many("taste", "preference", r"i %(?:hate|dislike|can't stand|cannot stand) (.+)", "The user dislikes {0}."),
    _many("allergy", "constraint", r"i(?:'m| am) %allergic to (.+)", "The user is allergic to {0}."),
    _many("allergy", "constraint", r"i have an? (.+) allergy", "The user is allergic to {0}."),
    _many("diet", "constraint", rf"i(?:'m| am) %{_DIETS}", "The user is {0}.", _is_diet),
    _many("diet", "constraint", rf"i %{_NO} eat (.+)", "The user does not eat {0}."),
    _many("diet", "constraint", rf"i %{_NO} drink (.+)", "The user does not drink {0}."),
    _many("tool", "context", r"i %use (.+)", "The user uses {0}."),
    _many(
        "tool",
        "context",
        r"(?:i|we)(?:(?:'ve| have))? %switched (?:from [^,]{1,60} )?to (.+)",
        "The user switched to {0}.",
    ),
    _many("tool", "context", r"(?:at work )?we %use (.+)", "The user's group uses {0}."),
    _many(
        "answer_language_when",
        "preference",
        r"(?:please |always |only )+(?:answer|reply|respond|write|talk)(?: to)?(?: me)? in (.+ when .+)",
        "The user wants answers in {0}.",
        _is_language_sometimes,
    ),
    _single(
        "answer_language",
        "preference",
        r"(?:please|always|only|from now on,?)(?: please| always| only)* (?:answer|reply|respond|write|talk)"
        r"(?: to)?(?: me)? in (.+)",
        "The user wants answers in {0}.",
        _is_language_always,
    ),
    _single(
        "answer_language",
        "preference",
        r"(?:answer|reply|respond|write)(?: to)?(?: me)? (?:always )?in (.+?),?"
        r" (?:from now on|in (?:the )?future|going forward)",
        "The user wants answers in {0}.",
        _is_language_always,
    ),
    _many(
        "answer_tone",
        "preference",
        rf"(?:please |always )*keep (?:your |the )?(?:answers|replies|responses) {_TONES}",
        "The user wants {0} answers.",
    ),
    _many(
        "answer_habit",
        "preference",
        rf"(?:please )?(?:don't|do not|never|stop|no more) (?:us(?:e|ing)|add(?:ing)? |with)? ?{_HABITS}"
        r"(?: in (?:your|the) (?:answers|replies|responses))?",
        "The user does not want {0} in answers.",
    ),
    _many("learning", "goal", r"i(?:'m| am) %(?:learning|studying) (.+)", "The user is learning {0}."),
    _many("learning", "goal", r"i(?:(?:'ve| have))? %started (?:learning|studying) (.+)", "The user is learning {0}."),
    _many("goal", "goal", rf"i %want to ({_GOAL_VERBS}.+)", "The user wants to {0}."),
    _many("goal", "goal", r"i(?:'m| am) %(?:planning|hoping|aiming) to (.+)", "The user plans to {0}."),
    _many("goal", "goal", r"i %(?:plan|intend|aim) to (.+)", "The user plans to {0}."),
    _many("goal", "goal", r"my goal(?: this year| for this year)? is to (.+)", "The user's goal is to {0}."),
    _many("decision", "decision", r"i(?:(?:'ve| have))? %decided to (.+)", "The user decided to {0}."),
    _many(
        "decision", "decision", r"we(?:(?:'ve| have))? %(?:decided|agreed) to (.+)", "The user's group decided to {0}."
    ),
    _many(
        "decision",
        "decision",
        r"we(?:(?:'ve| have))? %(?:decided|agreed|settled) on (.+)",
        "The user's group decided on {0}.",
    ),
)

# The kind of fact that has ended, if the document contains it with this value.
ENDINGS = (
    ("residence", re.compile(r"i (?:no longer|don't) live in (.+)", re.I)),
    ("employer", re.compile(r"i (?:no longer|don't) work (?:at|for) (.+)", re.I)),
    ("tool", re.compile(r"i (?:no longer|don't) use (.+)", re.I)),
    ("learning", re.compile(r"i(?:'m| am) (?:no longer|not) (?:learning|studying) (.+)", re.I)),
)
