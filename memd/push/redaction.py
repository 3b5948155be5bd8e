"""Redaction: keys, tokens, card numbers and passwords, cut out before a model sees a text and before it is stored.

Formats of well-known tokens are those of detect-secrets; card numbers are checked as python-stdnum does it. What people
say in a sentence ("my password is …", "密码是…") is looked for here, in English and Chinese.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module

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
"""Detectors of detect-secrets that say what they found by its form alone, and the kind that they find."""

_OWN = (
    ("key", r"sk-(?<!\wsk-)[A-Za-z0-9_-]{20,}"),  # Anthropic, OpenAI and those who copied them
    ("key", r"AIza[0-9A-Za-z_-]{35}"),
    ("token", r"github_pat_[A-Za-z0-9_]{50,}"),
    ("token", r"hf_(?<!\whf_)[A-Za-z0-9]{30,}"),
    ("token", r"npm_[A-Za-z0-9]{36}\b"),
    ("token", r"ya29\.[A-Za-z0-9_-]{30,}"),
    ("key", r"[srp]k_(?:live|test)_[0-9a-zA-Z]{16,}"),
    ("token", r"xapp-[0-9A-Za-z-]{30,}"),
    ("token", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
)
"""Formats that detect-secrets 1.5 does not know, or knows only inside code."""

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", re.DOTALL
)
_URL_PASSWORD = re.compile(r"://[^\s/:@]+:(?P<secret>[^\s/@]+)@")

# What follows the word decides: a value with a digit, a sign or capitals inside, or one in quotes, is a secret; "the
# password is wrong" and "密码是必填的" are not.
_SEPARATOR = (
    r"[\"'`]?[^\S\n]*(?:\bis\b|\bwas\b|\bto\b|->|=>|:=|=|:|：|＝|是|为|為|叫"
    r"|改成了?|改为|設成|设成了?|设为|換成|换成了?)[^\S\n]*"
)
_QUOTED = r"[\"'`“「『‘](?P<quoted>[^\"'`”」』’\n]{3,64})[\"'`”」』’]"
_NAMED = r"(?P<named>[^\s\"'`“”「」『』，。；、,;]{3,128})"
_PASSWORD = re.compile(
    r"(?:(?<![A-Za-z])(?:pass(?:word|wd|code|phrase)|pwd|pin(?: code)?)(?![A-Za-z])|密码|密碼|口令|通行码|pin码)"
    r"(?:\s+(?:for|of|to|on|at)\s+(?:[^\s.,;:=]+\s+){0,3}?[^\s.,;:=]+)?" + _SEPARATOR + rf"(?:{_QUOTED}|{_NAMED})",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"(?:(?<![A-Za-z])(?:api|access|secret|private|auth|signing|encryption|client|app|bot|refresh|session)[ _-]?"
    r"(?:access[ _-]?)?(?:key|token|secret)(?![A-Za-z])"
    r"|(?<![A-Za-z])(?:token|secret|apikey)(?![A-Za-z])|密钥|密鑰|令牌|私钥|api ?key)"
    r"(?:\s+(?:for|of|to|on)\s+(?:[^\s.,;:=]+\s+){0,3}?[^\s.,;:=]+)?" + _SEPARATOR + rf"(?:{_QUOTED}|{_NAMED})",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d-])")
_CARD_FORM = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14}|62\d{14,17}|3(?:0[0-5]|[68]\d)\d{11}"
)
"""Issuers' prefixes and lengths; together with the check digit hardly an order number is taken for a card."""

_RUN = re.compile(r"[A-Za-z0-9_./:+=~-]{20,}")
"""What a token can stand in: only these stretches of a text are compared with the formats, which there are many of."""

_BEARER = re.compile(r"(?i:\bbearer)\s+(?P<secret>[A-Za-z0-9._~+/-]{20,}=*)")
_HINTS = ("pass", "pwd", "pin", "secret", "token", "key", "bearer", "密", "口令", "令牌", "私钥", "通行码")
_PLACEHOLDER = re.compile(r"\[redacted:[a-z_]+\]")
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
"""Full-width ASCII, as it is typed among Chinese; one character each, so that places stay."""

Span = tuple[int, int, str]
Looks = Callable[[str, re.Match[str]], bool]


def redact(text: str) -> tuple[str, Counter[str]]:
    """The text with `[redacted:<kind>]` for each secret, and how many there were of each kind. Idempotent."""
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
    """Compile all formats now, for the children of this process as well; else they are when one is first needed."""
    _tokens()


def holds_secret(text: str) -> bool:
    """Whether there is a secret in the text, or the place of one that was cut out."""
    return _PLACEHOLDER.search(text) is not None or bool(find(text))


def find(text: str) -> list[Span]:
    """Start, end and kind of each secret, in order, none overlapping."""
    plain = text if text.isascii() else text.translate(_WIDE)
    if "[redacted:" in plain:  # what is gone already is neither a word nor a value
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
    if "-----BEGIN" in text:
        yield from ((*match.span(), "private_key") for match in _PRIVATE_KEY.finditer(text))
    if "://" in text:
        yield from ((*match.span("secret"), "password") for match in _URL_PASSWORD.finditer(text))
    for run in _RUN.finditer(text):
        for kind, pattern in _tokens():
            yield from ((*match.span(), kind) for match in pattern.finditer(text, *run.span()))
    yield from ((*match.span(), "card") for match in _CARD.finditer(text) if _is_card(match[0]))
    lowered = text.lower()
    if any(hint in lowered for hint in _HINTS):
        yield from ((*match.span("secret"), "token") for match in _BEARER.finditer(text))
        yield from _said(_PASSWORD, text, "password", _looks_like_a_password)
        yield from _said(_SECRET, text, "key", _looks_like_a_key)


@cache
def _tokens() -> tuple[tuple[str, re.Pattern[str]], ...]:
    found = [(kind, re.compile(pattern)) for kind, pattern in _OWN]
    for name, kind in PLUGINS.items():
        module, _, detector = name.partition(".")
        patterns: Iterable[re.Pattern[str]] = getattr(
            import_module(f"detect_secrets.plugins.{module}"), detector
        ).denylist
        found += [(kind, pattern) for pattern in patterns]
    return tuple(found)


def _said(pattern: re.Pattern[str], text: str, kind: str, looks: Looks) -> Iterator[Span]:
    for match in pattern.finditer(text):
        group = "quoted" if match["quoted"] is not None else "named"
        value = match[group].rstrip(".。)）")
        if (group == "quoted" and " " not in value.strip()) or looks(value, match):
            yield match.start(group), match.start(group) + len(value), kind


def _looks_like_a_password(value: str, match: re.Match[str]) -> bool:
    """A digit, a sign or a capital inside: nobody says "the password is Wr0ng" of a wrong one."""
    if len(value) < 3 or value.endswith(":") or not value.isascii():
        return False
    if value.isdigit():
        return len(value) >= 4 or "pin" in match[0].lower()
    inner = value[1:]
    signs = any(not char.isalnum() and char not in "-'/()" for char in value)
    return any(map(str.isdigit, value)) or signs or (inner != inner.lower() and not value.isupper())


def _looks_like_a_key(value: str, _: re.Match[str]) -> bool:
    """Long, of one run, with digits: no word of any language."""
    return len(value) >= 12 and value.isascii() and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_card(text: str) -> bool:
    from stdnum import luhn  # noqa: PLC0415  (only for what already looks like a card)

    digits = re.sub(r"[ -]", "", text)
    return _CARD_FORM.fullmatch(digits) is not None and luhn.is_valid(digits) and len(set(digits)) > 1
