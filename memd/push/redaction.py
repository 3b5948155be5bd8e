"""Redaction: cuts keys, tokens, card numbers and passwords out of a text before it reaches a model or the store.

The formats of well-known tokens come from detect-secrets, the check digit of card numbers from python-stdnum. The rest
is in `redaction/<language>.yaml`, also how people name a secret in a sentence ("my password is …", "密码是…").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module

from stdnum import luhn

from memd.push.patterns import compiled, load

PLUGINS = {
    "aws.AWSKeyDetector": "key",
    "azure_storage_key.AzureStorageKeyDetector": "key",
    "discord.DiscordBotTokenDetector": "token",
    "github_token.GitHubTokenDetector": "token",
    "gitlab_token.GitLabTokenDetector": "token",
    "mailchimp.MailchimpDetector": "key",
    "npm.NpmDetector": "token",
    "openai.OpenAIDetector": "key",
    "pypi_token.PypiTokenDetector": "token",
    "sendgrid.SendGridDetector": "key",
    "slack.SlackDetector": "token",
    "square_oauth.SquareOAuthDetector": "key",
    "stripe.StripeDetector": "key",
    "telegram_token.TelegramBotTokenDetector": "token",
    "twilio.TwilioKeyDetector": "key",
}
"""The detectors of detect-secrets that decide by form alone, each with the kind of secret it finds."""

_RUN = re.compile(r"[A-Za-z0-9_./:+=~-]{20,}")
"""A stretch of text that may hold a token; only these are compared with the many formats."""

_PLACEHOLDER = re.compile(r"\[redacted:[a-z_]+\]")
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
"""Full-width ASCII, common in Chinese text, to ASCII; one character each, so positions stay the same."""

Span = tuple[int, int, str]
Looks = Callable[[str, re.Match[str]], bool]


class _Patterns:
    """The patterns of `redaction/*.yaml`, compiled."""

    def __init__(self) -> None:
        sources = load("redaction")
        self.tokens = [(kind, re.compile(source)) for kind in ("key", "token") for source in sources[kind]]
        self.private_key = compiled(sources["private_key"])
        self.url_password = compiled(sources["url_password"])
        self.bearer = compiled(sources["bearer"])
        self.card = compiled(sources["card"])
        self.card_issuer = compiled(sources["card_issuer"])
        self.named_password = compiled(sources["named_password"])
        self.named_key = compiled(sources["named_key"])
        self.hints = sources["hint"]


def redact(text: str) -> tuple[str, Counter[str]]:
    """The text with each secret replaced by `[redacted:<kind>]`, and the count of each kind. Idempotent."""
    spans = find(text)
    if not spans:
        return text, Counter()
    parts: list[str] = []
    end = 0
    for start, stop, kind in spans:
        parts += [text[end:start], f"[redacted:{kind}]"]
        end = stop
    return "".join([*parts, text[end:]]), Counter(kind for _, _, kind in spans)


def prepare() -> None:
    """Compile all patterns now, so that forked children share them; otherwise the first use compiles them."""
    _patterns()
    _tokens()


def holds_secret(text: str) -> bool:
    """Whether the text has a secret, or the mark of one that was cut out."""
    return _PLACEHOLDER.search(text) is not None or bool(find(text))


def find(text: str) -> list[Span]:
    """Start, end and kind of each secret, in order, none overlapping."""
    plain = text if text.isascii() else text.translate(_WIDE)
    if "[redacted:" in plain:  # the mark of a secret is neither a word nor a value
        plain = _PLACEHOLDER.sub(lambda found: "\n" * len(found[0]), plain)
    spans = sorted(_spans(plain))
    taken: list[Span] = []
    for start, end, kind in spans:
        if taken and start < taken[-1][1]:
            first, last, name = taken[-1]
            taken[-1] = (first, max(last, end), name)
        else:
            taken.append((start, end, kind))
    return taken


def _spans(text: str) -> Iterator[Span]:
    patterns = _patterns()
    if "-----BEGIN" in text:
        yield from ((*match.span(), "private_key") for match in patterns.private_key.finditer(text))
    if "://" in text:
        yield from ((*match.span("secret"), "password") for match in patterns.url_password.finditer(text))
    for run in _RUN.finditer(text):
        for kind, pattern in _tokens():
            yield from ((*match.span(), kind) for match in pattern.finditer(text, *run.span()))
    yield from ((*match.span(), "card") for match in patterns.card.finditer(text) if _is_card(match[0]))
    lowered = text.lower()
    if any(hint in lowered for hint in patterns.hints):
        yield from ((*match.span("secret"), "token") for match in patterns.bearer.finditer(text))
        yield from _named(patterns.named_password, text, "password", _looks_like_a_password)
        yield from _named(patterns.named_key, text, "key", _looks_like_a_key)


_patterns = cache(_Patterns)


@cache
def _tokens() -> tuple[tuple[str, re.Pattern[str]], ...]:
    found = list(_patterns().tokens)
    for name, kind in PLUGINS.items():
        module, _, detector = name.partition(".")
        patterns: Iterable[re.Pattern[str]] = getattr(
            import_module(f"detect_secrets.plugins.{module}"), detector
        ).denylist
        found += [(kind, pattern) for pattern in patterns]
    return tuple(found)


def _named(pattern: re.Pattern[str], text: str, kind: str, looks: Looks) -> Iterator[Span]:
    for match in pattern.finditer(text):
        group = "quoted" if match["quoted"] is not None else "named"
        value = match[group].rstrip(".。)）")
        if (group == "quoted" and " " not in value.strip()) or looks(value, match):
            yield match.start(group), match.start(group) + len(value), kind


def _looks_like_a_password(value: str, match: re.Match[str]) -> bool:
    """Whether a value has a digit, a sign or a capital inside: nobody writes "Wr0ng" for "wrong"."""
    if len(value) < 3 or value.endswith(":") or not value.isascii():
        return False
    if value.isdigit():
        return len(value) >= 4 or "pin" in match[0].lower()
    inner = value[1:]
    signs = any(not char.isalnum() and char not in "-'/()" for char in value)
    return any(map(str.isdigit, value)) or signs or (inner != inner.lower() and not value.isupper())


def _looks_like_a_key(value: str, _: re.Match[str]) -> bool:
    """Whether a value is long, without spaces, and has digits: no word of any language."""
    return len(value) >= 12 and value.isascii() and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_card(text: str) -> bool:
    digits = re.sub(r"[ -]", "", text)
    return _patterns().card_issuer.fullmatch(digits) is not None and luhn.is_valid(digits) and len(set(digits)) > 1
