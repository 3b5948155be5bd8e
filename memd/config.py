"""The settings: defaults < config.yaml < MEMD_* environment < flags; checked in sentences, frozen, passed down.

A default stands in one place, the model below; `config.yaml` repeats all of them with unit and meaning, and a test
compares the two. An unknown key, a value out of range or a contradiction raises `ConfigError` with one sentence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, ValidationError, convert, field, structs
from msgspec.json import encode

from memd.errors import ConfigError

ENV_PREFIX = "MEMD_"
CONFIG_FILE = "config.yaml"

AppName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}\Z")]
HostName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9.:\[\]-]{1,255}\Z")]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1, le=10_000_000)]
Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]
Tokens = Annotated[int, Meta(ge=1, le=1_000_000_000_000)]

_WORDS = {"yes": True, "on": True, "y": True, "t": True, "no": False, "off": False, "n": False, "f": False}
"""Of switches, as texts; `true`, `false`, 1 and 0 are understood without."""

_MASK = "**********"


class Secret:
    """A text that shows in no repr, log or listing; `reveal` gives it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Hold this text."""
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret('{_MASK}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


class Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A frozen group of settings; an unknown key is an error. `load` checks them; one that is made by hand is not.

    A Struct of msgspec: it is there in a tenth of the time that a model of pydantic takes, and every command reads it.
    """


def _hide(section: Section, name: str) -> None:
    """Settings that are made by hand may hold a secret as a text, which their repr must not show."""
    if isinstance(value := getattr(section, name), str):
        structs.force_setattr(section, name, Secret(value))


class ServerSettings(Section, frozen=True):
    appendfsync: Literal["everysec", "always"] = "everysec"


class ClientSettings(Section, frozen=True):
    default_user: str | None = None
    apps: tuple[AppName, ...] = ()
    max_push_bytes: Annotated[int, Meta(ge=1_024, le=67_108_864)] = 1_048_576
    max_messages: Annotated[int, Meta(ge=1, le=5_000)] = 1_000
    max_message_chars: Annotated[int, Meta(ge=100, le=10_000_000)] = 100_000


class FilteringSettings(Section, frozen=True):
    require_reply: bool = False


class SignalsSettings(Section, frozen=True):
    folder: Path | None = None


class InboxSettings(Section, frozen=True):
    receipt_ttl_s: Seconds = 86_400.0
    known_ttl_s: Seconds = 3_600.0
    memory_headroom: Annotated[float, Meta(gt=0.1, le=1)] = 0.9
    allow_unfit_server: bool = False


class SchedulerSettings(Section, frozen=True):
    quiet_s: Annotated[float, Meta(ge=0.01, le=300)] = 30.0
    max_wait_s: Annotated[float, Meta(ge=0.01, le=86_400)] = 300.0
    flush_tokens: Count = 4_000
    tick_ms: Annotated[int, Meta(ge=10, le=250)] = 250

    def __post_init__(self) -> None:
        if self.max_wait_s < self.quiet_s:
            raise ValueError(f"max_wait_s ({self.max_wait_s:g}) must not be shorter than quiet_s ({self.quiet_s:g})")


class DrainSettings(Section, frozen=True):
    workers: Annotated[int, Meta(ge=1, le=256)] = 2
    concurrency: Annotated[int, Meta(ge=1, le=1_024)] = 32
    lease_s: Annotated[float, Meta(ge=1, le=3_600)] = 120.0
    claim_tokens: Count = 40_000
    max_attempts: Annotated[int, Meta(ge=1, le=100)] = 5
    backoff_s: Seconds = 2.0
    backoff_max_s: Seconds = 300.0
    slice_s: Annotated[float, Meta(ge=1, le=120)] = 60.0
    linger_s: Annotated[float, Meta(ge=0, le=60)] = 2.0


class BudgetSettings(Section, frozen=True):
    user_tokens_per_day: Tokens | None = None
    total_tokens_per_day: Tokens | None = None


class PriceSettings(Section, frozen=True):
    """Of one model: US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cache_read: Dollars
    cache_write: Dollars


# Anthropic's price list of October 2026; a cache write is one for an hour, as memd asks for it.
PRICES = {"claude-haiku-5-5": PriceSettings(input=0.10, output=0.50, cache_read=0.01, cache_write=0.20)}


class ExtractionSettings(Section, frozen=True):
    extractor: Literal["auto", "anthropic", "rules"] = "auto"
    mode: Literal["now", "batch"] = "now"
    batch_poll_s: Annotated[float, Meta(ge=0.05, le=3_600)] = 60.0
    model: str = "claude-haiku-5-5"
    base_url: str | None = None
    api_key: Secret | None = None
    max_tokens: Annotated[int, Meta(ge=256, le=21_000)] = 4_096
    deadline_s: Annotated[float, Meta(ge=0.1, le=90)] = 90.0
    max_reply_bytes: Annotated[int, Meta(ge=10_000)] = 2_097_152
    context_messages: Annotated[int, Meta(ge=0, le=20)] = 2
    prices: Mapping[str, PriceSettings] = field(default_factory=PRICES.copy)

    def __post_init__(self) -> None:
        _hide(self, "api_key")


class ApplySettings(Section, frozen=True):
    confidence_threshold: Share = 0.7
    max_facts: Annotated[int, Meta(ge=10, le=500)] = 100
    categories: tuple[str, ...] = (
        "preference", "knowledge", "context", "behavior", "goal", "correction",
        "event", "constraint", "decision", "identity",
    )  # fmt: skip
    fact_min_chars: Annotated[int, Meta(ge=1, le=100)] = 5
    fact_max_chars: Annotated[int, Meta(ge=50, le=10_000)] = 2_000
    near_duplicate: Share = 0.85
    max_new_per_thread_day: Annotated[int, Meta(ge=0, le=10_000)] = 0
    max_retired_facts: Annotated[int, Meta(ge=0, le=500)] = 10
    max_retired_share: Share = 0.2
    stale_after_days: Annotated[int, Meta(ge=0, le=36_500)] = 180
    review_max: Annotated[int, Meta(ge=0, le=50)] = 5
    consolidate_from: Annotated[int, Meta(ge=0, le=500)] = 8
    eviction: Literal["confidence", "hybrid"] = "confidence"
    archive_cap: Annotated[int, Meta(ge=0, le=10_000)] = 200
    ledger_cap: Annotated[int, Meta(ge=100, le=1_000_000)] = 20_000


class StoreSettings(Section, frozen=True):
    class_: str = field(default="memd.memory.store.JsonStore", name="class")
    shared: bool = False
    cache_documents: Annotated[int, Meta(ge=0, le=1_000_000)] = 1_000


class RecallSettings(Section, frozen=True):
    injection_enabled: bool = True
    max_injection_tokens: Annotated[int, Meta(ge=100, le=8_000)] = 2_000
    correction_tokens: Annotated[int, Meta(ge=0, le=8_000)] = 500
    order: Literal["stable", "established"] = "stable"
    with_user_memory: bool = True
    embedder: str | None = None


class HttpSettings(Section, frozen=True):
    enabled: bool = False
    host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8477
    hosts: tuple[HostName, ...] = ()
    tokens: Path | None = None
    read_timeout_s: Annotated[float, Meta(ge=0.1, le=300)] = 10.0
    request_timeout_s: Annotated[float, Meta(ge=1, le=600)] = 30.0
    keep_alive_s: Annotated[int, Meta(ge=1, le=3_600)] = 75
    max_connections: Annotated[int, Meta(ge=2, le=100_000)] = 500


class LogSettings(Section, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "pretty"] = "auto"


class Settings(Section, frozen=True):
    """All settings, in the order of the flow. `config.yaml` says what each one means."""

    data_dir: Path = Path("memd-data")
    redis_url: Secret | None = None
    enabled: bool = True
    server: ServerSettings = ServerSettings()
    client: ClientSettings = ClientSettings()
    filtering: FilteringSettings = FilteringSettings()
    signals: SignalsSettings = SignalsSettings()
    inbox: InboxSettings = InboxSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    drain: DrainSettings = DrainSettings()
    budget: BudgetSettings = BudgetSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    apply: ApplySettings = ApplySettings()
    store: StoreSettings = StoreSettings()
    recall: RecallSettings = RecallSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()

    def __post_init__(self) -> None:
        _hide(self, "redis_url")


@dataclass(frozen=True)
class Loaded:
    """The settings in force, and for each dotted name where its value comes from."""

    settings: Settings
    origins: Mapping[str, str]


def load(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    *,
    use_file: bool = True,
) -> Loaded:
    """Read the settings. `use_file` False reads none, wherever one may lie.

    `file` must exist when given; without it `MEMD_CONFIG`, then `config.yaml` of the working folder is read if it is
    there. `flags` are dotted names with values that are not None. Raises ConfigError.
    """
    environ = os.environ if environ is None else environ
    path = file or _found(environ) if use_file else None
    layers: list[tuple[str, Mapping[str, Any]]] = []
    if path is not None:
        from memd import yaml_text  # noqa: PLC0415  (only where there is a file)

        layers.append((str(path), dict(_flatten(yaml_text.read(path)))))
    layers.append(("environment", dict(_from_environment(environ))))
    layers.append(("flag", {name: value for name, value in (flags or {}).items() if value is not None}))
    tree: dict[str, Any] = {}
    origins = dict.fromkeys(names(), "default")
    switches = {name for name, annotation in kinds() if annotation is bool}
    for origin, values in layers:
        for name, value in values.items():
            _put(tree, name, _WORDS.get(value.lower(), value) if name in switches and isinstance(value, str) else value)
            origins[name] = origin
    try:
        return Loaded(convert(tree, Settings, strict=False, dec_hook=_decoded), origins)
    except ValidationError as error:
        from memd.config_words import sentence  # noqa: PLC0415  (only when something is wrong)

        raise ConfigError(sentence(error, origins, tree, dict(kinds()))) from None


def _found(environ: Mapping[str, str]) -> Path | None:
    if environ.get("MEMD_CONFIG"):
        return Path(environ["MEMD_CONFIG"])
    return Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None


def _decoded(kind: type, value: object) -> object:
    """What msgspec does not know; raising here names the setting. A folder may begin with ~ for the home folder."""
    if kind is Path and isinstance(value, (str, Path)):
        return _at_home(Path(value))
    if not isinstance(value, str):
        raise TypeError("must be a path" if kind is Path else "must be a text")
    return kind(value)


def _at_home(path: Path) -> Path:
    if path.parts[:1] != ("~",):
        return path
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("there is no home folder for ~") from None


def plain(settings: Settings) -> dict[str, Any]:
    """All settings as JSON has them, secrets masked."""
    tree: dict[str, Any] = json.loads(encode(settings, enc_hook=lambda one: _MASK if type(one) is Secret else str(one)))
    return tree


def as_environment(settings: Settings) -> dict[str, str]:
    """The MEMD_* variables that give a child process these settings; they say more than any file it may find."""
    tree = plain(settings)
    if settings.redis_url:
        tree["redis_url"] = settings.redis_url.reveal()
    if settings.extraction.api_key:
        tree["extraction"]["api_key"] = settings.extraction.api_key.reveal()
    tree["data_dir"] = str(settings.data_dir.absolute())
    return {ENV_PREFIX + name.upper().replace(".", "__"): json.dumps(value) for name, value in _flatten(tree)}


def names() -> Iterator[str]:
    """The dotted name of every setting, in order."""
    return (name for name, _ in kinds())


def kinds() -> Iterator[tuple[str, Any]]:
    """The dotted name of every setting, in order, with its type."""
    for spec in structs.fields(Settings):
        if isinstance(spec.type, type) and issubclass(spec.type, Section):
            yield from ((f"{spec.name}.{inner.encode_name}", inner.type) for inner in structs.fields(spec.type))
        else:
            yield spec.name, spec.type


def _flatten(tree: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            for inner, leaf in value.items():
                yield f"{name}.{inner}", leaf
        else:
            yield str(name), value


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    texts = set(_texts())
    for variable, text in environ.items():
        if not variable.startswith(ENV_PREFIX) or variable == "MEMD_CONFIG":
            continue
        name = variable[len(ENV_PREFIX) :].lower().replace("__", ".")
        verbatim = name in texts and text != "null" and not text.startswith('"')  # as_environment quotes its texts
        yield name, text if verbatim and text else _value(text)


def _value(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):  # not JSON, as the daemon gives it to its parts: what a person wrote
        from memd import yaml_text  # noqa: PLC0415

        return yaml_text.value(text)


def _texts() -> Iterator[str]:
    """The settings whose values are texts: a key of digits stays a text, a folder called `no` a folder."""
    for name, annotation in kinds():
        if set(get_args(annotation) or (annotation,)) <= {str, Path, Secret, type(None)}:
            yield name


def _put(tree: dict[str, Any], name: str, value: Any) -> None:
    section, _, leaf = name.partition(".")
    if not leaf:
        tree[section] = value
        return
    inner = tree.setdefault(section, {})
    if isinstance(inner, dict):
        inner[leaf] = value
