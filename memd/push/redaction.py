"""Redaction: cuts keys, tokens, card numbers and passwords out of a text before it reaches a model or the store.

The formats of well-known tokens come from detect-secrets, gitleaks and CredSweeper. The rest is in
`redaction/<language>.yaml`, also how people name a secret in a sentence. A text is read as people see it
(`plain_text.py`), and once more without the line breaks inside keys.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from typing import NamedTuple

from memd.push import personal
from memd.push.marks import MARK, mark
from memd.push.named_secrets import NamedSecrets, Span, Values
from memd.push.numbers import cards, seed_phrases
from memd.push.patterns import compiled, load, prepared
from memd.push.plain_text import plain_text, without
from memd.push.prefilter import Prefilter

PLUGINS = {
    "aws.AWSKeyDetector": "key",
    "azure_storage_key.AzureStorageKeyDetector": "key",
    "discord.DiscordBotTokenDetector": "token",
    "github_token.GitHubTokenDetector": "token",
    "gitlab_token.GitLabTokenDetector": "token",
    "mailchimp.MailchimpDetector": "key",
    "pypi_token.PypiTokenDetector": "token",
    "sendgrid.SendGridDetector": "key",
    "slack.SlackDetector": "token",
    "square_oauth.SquareOAuthDetector": "key",
    "stripe.StripeDetector": "key",
    "telegram_token.TelegramBotTokenDetector": "token",
    "twilio.TwilioKeyDetector": "key",
}
"""The detectors of detect-secrets that decide by form alone, each with the kind of secret it finds.

Those for OpenAI and npm are left out: they take quadratic time, and prefixes.yaml covers what they find."""

_RUN = re.compile(r"[A-Za-z0-9_./:+=~-]{20,}+")
"""A stretch of text that may hold a token of a detector of detect-secrets."""

WINDOW = 1_024
"""Characters of a run that one of those detectors sees at once; windows overlap by half, so no token is cut."""

_REST = r"(?:[A-Za-z0-9_-]|[.+/=~:%](?=[A-Za-z0-9_-]))"
_BREAK = re.compile(r"(?<=[A-Za-z0-9_+/-])\\?[^\S\n]{0,4}\r?\n[^\S\n]{0,40}(?=[A-Za-z0-9_+/.-]{0,200}\d)")
"""A line break inside what may be a key: the next line begins with a run that has a digit."""

_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")


class _Form(NamedTuple):
    """A format of tokens; `loose`: only its beginning is known, so what follows must look random."""

    kind: str
    pattern: re.Pattern[str]
    loose: bool


class _Patterns:
    """The patterns of `redaction/*.yaml`, compiled."""

    def __init__(self) -> None:
        sources = load("redaction")
        self.forms = Prefilter([(form.pattern.pattern, form) for form in _forms(sources)])
        self.detectors = Prefilter(_detectors(), folded=True)
        self.private_key = compiled(sources["private_key"])
        self.url_password = [re.compile(source) for source in sources["url_password"]]
        self.header = [re.compile(source) for source in sources["header"]]
        self.cookie = [re.compile(source) for source in sources["cookie"]]
        self.command = [re.compile(source) for source in sources["command"]]
        self.stated = [re.compile(source) for source in sources["stated"]]
        self.requests = [*self.header, *self.cookie, *self.command, *self.stated]
        self.seed_hints = sources["seed_hint"]
        self.values = Values(sources)
        self.named = NamedSecrets(sources, self.values)


def _forms(sources: dict[str, list[str]]) -> Iterator[_Form]:
    for kind in ("key", "token", "password"):
        yield from (_Form(kind, re.compile(source), loose=False) for source in sources[kind])
        for entry in sources.get(f"{kind}_prefix", []):
            prefix, _, least = entry.partition(" ")
            start = re.escape(prefix)
            end = rf"{_REST}{{{least or 16},}}+=*"
            yield _Form(kind, re.compile(rf"{start}(?<![A-Za-z0-9]{start}){end}"), loose=True)


def _detectors() -> Iterator[tuple[str, _Form]]:
    for name, kind in PLUGINS.items():
        module, _, detector = name.partition(".")
        patterns: Iterable[re.Pattern[str]] = getattr(
            import_module(f"detect_secrets.plugins.{module}"), detector
        ).denylist
        yield from ((pattern.pattern, _Form(kind, pattern, loose=False)) for pattern in patterns)


def redact(text: str, *, pii: bool = False) -> tuple[str, Counter[str]]:
    """The text with each secret replaced by `[redacted:<kind>]`, and the count of each kind. Idempotent.

    `pii`: personal data too (`redaction.pii`).
    """
    spans = merged([*find(text), *personal.find(text)]) if pii else find(text)
    if not spans:
        return text, Counter()
    parts: list[str] = []
    end = 0
    for start, stop, kind in spans:
        parts += [text[end:start], mark(kind)]
        end = stop
    return "".join([*parts, text[end:]]), Counter(kind for _, _, kind in spans)


def holds_secret(text: str) -> bool:
    """Whether the text has a secret, or the mark of one that was cut out."""
    return bool(text) and (MARK.search(text) is not None or bool(find(text)))


def find(text: str) -> list[Span]:
    """Start, end and kind of each secret, in order, none overlapping."""
    if "[redacted:" in text:  # the mark of a secret is neither a word nor a value
        text = MARK.sub(lambda found: "\n" * len(found[0]), text)
    plain = plain_text(text)
    return [(*plain.original(start, end), kind) for start, end, kind in merged(_spans(plain.text))]


def private_keys(text: str) -> list[Span]:
    """The private keys in a text, however long: a search without the others, for texts of any length."""
    if "-----BEGIN" not in text and "PuTTY-User-Key-File" not in text:
        return []
    keys = _patterns().private_key.finditer(text)
    return [(*match.span(), "private_key") for match in keys if _KEY_LINE.search(match[0])]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that overlap as one."""
    taken: list[Span] = []
    for start, end, kind in sorted(spans):
        if taken and start < taken[-1][1]:
            first, last, name = taken[-1]
            taken[-1] = (first, max(last, end), name)
        else:
            taken.append((start, end, kind))
    return taken


def _spans(text: str) -> Iterator[Span]:
    patterns = _patterns()
    lowered = text.lower()
    yield from private_keys(text)
    if "@" in text:
        yield from _marked(patterns.url_password, text, "password")
    yield from _tokens(text)
    joined = without(_BREAK, text) if "\n" in text else None
    if joined is not None and joined.text != text:
        yield from ((*joined.original(start, end), kind) for start, end, kind in _tokens(joined.text))
    yield from _requests(text, lowered)
    yield from ((start, end, "card") for start, end in cards(text))
    yield from ((start, end, "seed_phrase") for start, end in seed_phrases(lowered, _patterns().seed_hints))
    yield from patterns.named.find(text, lowered)


_patterns = prepared(_Patterns)


def _tokens(text: str) -> Iterator[Span]:
    """The keys and tokens whose format is known."""
    for form in _patterns().forms.select(text):
        for match in form.pattern.finditer(text):
            if "EXAMPLE" not in match[0] and (not form.loose or _looks_random(match[0][3:])):
                yield *match.span(), form.kind
    for run in _RUN.finditer(text):
        for form in _patterns().detectors.select(run[0]):
            yield from _in_windows(form, text, *run.span())


def _in_windows(form: _Form, text: str, start: int, end: int) -> Iterator[Span]:
    """The tokens of a detector in a run, looked for in windows, since some detectors take quadratic time."""
    for place in range(start, end, WINDOW // 2):
        for match in form.pattern.finditer(text, place, min(end, place + WINDOW)):
            yield *match.span(), form.kind


def searches() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Each pattern of the known formats with its search alone, for the tests of time."""
    for form in _patterns().forms.all():
        yield form.pattern.pattern, form.pattern.findall
    for form in _patterns().detectors.all():
        yield form.pattern.pattern, partial(_all_in_windows, form)
    for pattern in (_patterns().private_key, *_patterns().url_password, *_patterns().requests):
        yield pattern.pattern, pattern.findall


def _all_in_windows(form: _Form, text: str) -> list[Span]:
    return list(_in_windows(form, text, 0, len(text)))


def _looks_random(text: str) -> bool:
    """Whether a text has a digit, or letters of both cases: no word of prose, no placeholder."""
    return any(map(str.isdigit, text)) or not (text.islower() or text.isupper())


def _requests(text: str, lowered: str) -> Iterator[Span]:
    """The secrets in headers, cookies, parameters and commands."""
    patterns = _patterns()
    if "authorization" in lowered or "bearer" in lowered:
        yield from _marked(patterns.header, text, "token")
    if "=" in text:
        yield from _marked(patterns.cookie, text, "token")
    if "WIFI:" in text or "identified" in lowered:
        yield from _marked(patterns.stated, text, "password")
    if "-" in text or "/user:" in text:
        yield from _marked(patterns.command, text, "password")


def _marked(patterns: Iterable[re.Pattern[str]], text: str, kind: str) -> Iterator[Span]:
    """The part of each match that is secret, unless it only holds its place."""
    for pattern in patterns:
        for match in pattern.finditer(text):
            if not _patterns().values.holds_a_place(match["secret"]):
                yield *match.span("secret"), kind
