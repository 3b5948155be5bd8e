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

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from memd.errors import ConfigError

ENV_PREFIX = "MEMD_"
CONFIG_FILE = "config.yaml"

AppName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9.:\[\]-]{1,255}$")]
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
Dollars = Annotated[float, Field(ge=0, le=1_000_000)]
Tokens = Annotated[int, Field(ge=1, le=1_000_000_000_000)]


class Section(BaseModel):
    """A frozen group of settings; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class ServerSettings(Section):
    appendfsync: Literal["everysec", "always"] = "everysec"


class ClientSettings(Section):
    default_user: str | None = None
    apps: tuple[AppName, ...] = ()
    max_push_bytes: Annotated[int, Field(ge=1_024, le=67_108_864)] = 1_048_576
    max_messages: Annotated[int, Field(ge=1, le=5_000)] = 1_000
    max_message_chars: Annotated[int, Field(ge=100, le=10_000_000)] = 100_000


class FilteringSettings(Section):
    require_reply: bool = False


class SignalsSettings(Section):
    folder: Path | None = None


class InboxSettings(Section):
    receipt_ttl_s: Seconds = 86_400
    known_ttl_s: Seconds = 3_600
    memory_headroom: Annotated[float, Field(gt=0.1, le=1)] = 0.9
    allow_unfit_server: bool = False


class SchedulerSettings(Section):
    quiet_s: Annotated[float, Field(ge=0.01, le=300)] = 30
    max_wait_s: Annotated[float, Field(ge=0.01, le=86_400)] = 300
    flush_tokens: Count = 4_000
    tick_ms: Annotated[int, Field(ge=10, le=250)] = 250

    @model_validator(mode="after")
    def _ordered(self) -> SchedulerSettings:
        if self.max_wait_s < self.quiet_s:
            raise ValueError(f"max_wait_s ({self.max_wait_s:g}) must not be shorter than quiet_s ({self.quiet_s:g})")
        return self


class DrainSettings(Section):
    workers: Annotated[int, Field(ge=1, le=256)] = 2
    concurrency: Annotated[int, Field(ge=1, le=1_024)] = 32
    lease_s: Annotated[float, Field(ge=1, le=3_600)] = 120
    claim_tokens: Count = 40_000
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 5
    backoff_s: Seconds = 2
    backoff_max_s: Seconds = 300
    slice_s: Annotated[float, Field(ge=1, le=120)] = 60
    linger_s: Annotated[float, Field(ge=0, le=60)] = 2


class BudgetSettings(Section):
    user_tokens_per_day: Tokens | None = None
    total_tokens_per_day: Tokens | None = None


class PriceSettings(Section):
    """Of one model: US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cache_read: Dollars
    cache_write: Dollars


# Anthropic's price list of October 2026; a cache write is one for an hour, as memd asks for it.
PRICES = {"claude-haiku-5-5": PriceSettings(input=0.10, output=0.50, cache_read=0.01, cache_write=0.20)}


class ExtractionSettings(Section):
    extractor: Literal["auto", "anthropic", "rules"] = "auto"
    mode: Literal["now", "batch"] = "now"
    batch_poll_s: Annotated[float, Field(ge=0.05, le=3_600)] = 60
    model: str = "claude-haiku-5-5"
    base_url: str | None = None
    api_key: SecretStr | None = None
    max_tokens: Annotated[int, Field(ge=256, le=21_000)] = 4_096
    deadline_s: Annotated[float, Field(ge=0.1, le=90)] = 90
    max_reply_bytes: Annotated[int, Field(ge=10_000)] = 2_097_152
    context_messages: Annotated[int, Field(ge=0, le=20)] = 2
    prices: Mapping[str, PriceSettings] = PRICES


class ApplySettings(Section):
    confidence_threshold: Share = 0.7
    max_facts: Annotated[int, Field(ge=10, le=500)] = 100
    categories: tuple[str, ...] = (
        "preference", "knowledge", "context", "behavior", "goal", "correction",
        "event", "constraint", "decision", "identity",
    )  # fmt: skip
    fact_min_chars: Annotated[int, Field(ge=1, le=100)] = 5
    fact_max_chars: Annotated[int, Field(ge=50, le=10_000)] = 2_000
    near_duplicate: Share = 0.85
    max_new_per_thread_day: Annotated[int, Field(ge=0, le=10_000)] = 0
    max_retired_facts: Annotated[int, Field(ge=0, le=500)] = 10
    max_retired_share: Share = 0.2
    stale_after_days: Annotated[int, Field(ge=0, le=36_500)] = 180
    review_max: Annotated[int, Field(ge=0, le=50)] = 5
    consolidate_from: Annotated[int, Field(ge=0, le=500)] = 8
    eviction: Literal["confidence", "hybrid"] = "confidence"
    archive_cap: Annotated[int, Field(ge=0, le=10_000)] = 200
    ledger_cap: Annotated[int, Field(ge=100, le=1_000_000)] = 20_000


class StoreSettings(Section):
    class_: str = Field("memd.memory.store.JsonStore", alias="class")
    shared: bool = False
    cache_documents: Annotated[int, Field(ge=0, le=1_000_000)] = 1_000


class RecallSettings(Section):
    injection_enabled: bool = True
    max_injection_tokens: Annotated[int, Field(ge=100, le=8_000)] = 2_000
    correction_tokens: Annotated[int, Field(ge=0, le=8_000)] = 500
    order: Literal["stable", "established"] = "stable"
    with_user_memory: bool = True
    embedder: str | None = None


class HttpSettings(Section):
    enabled: bool = False
    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8477
    hosts: tuple[HostName, ...] = ()
    tokens: Path | None = None
    read_timeout_s: Annotated[float, Field(ge=0.1, le=300)] = 10
    request_timeout_s: Annotated[float, Field(ge=1, le=600)] = 30
    keep_alive_s: Annotated[int, Field(ge=1, le=3_600)] = 75
    max_connections: Annotated[int, Field(ge=2, le=100_000)] = 500


class LogSettings(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "pretty"] = "auto"


class Settings(Section):
    """All settings, in the order of the flow. `config.yaml` says what each one means."""

    data_dir: Path = Path("memd-data")
    redis_url: SecretStr | None = None
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
    store: StoreSettings = Field(default_factory=lambda: StoreSettings.model_validate({}))
    recall: RecallSettings = RecallSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()

    @field_validator("data_dir")
    @classmethod
    def _at_home(cls, folder: Path) -> Path:
        return folder.expanduser() if folder.parts[:1] == ("~",) else folder


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
        layers.append((str(path), dict(_flatten(_read_yaml(path)))))
    layers.append(("environment", dict(_from_environment(environ))))
    layers.append(("flag", {name: value for name, value in (flags or {}).items() if value is not None}))
    tree: dict[str, Any] = {}
    origins = dict.fromkeys(names(), "default")
    for origin, values in layers:
        for name, value in values.items():
            _put(tree, name, value)
            origins[name] = origin
    try:
        return Loaded(Settings.model_validate(tree), origins)
    except ValidationError as error:
        raise ConfigError(_sentence(error, origins)) from None


def _found(environ: Mapping[str, str]) -> Path | None:
    if environ.get("MEMD_CONFIG"):
        return Path(environ["MEMD_CONFIG"])
    return Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None


def as_environment(settings: Settings) -> dict[str, str]:
    """The MEMD_* variables that give a child process these settings; they say more than any file it may find."""
    tree = settings.model_dump(mode="json", by_alias=True)
    if settings.redis_url:
        tree["redis_url"] = settings.redis_url.get_secret_value()
    if settings.extraction.api_key:
        tree["extraction"]["api_key"] = settings.extraction.api_key.get_secret_value()
    tree["data_dir"] = str(settings.data_dir.absolute())
    return {ENV_PREFIX + name.upper().replace(".", "__"): json.dumps(value) for name, value in _flatten(tree)}


def names() -> Iterator[str]:
    """The dotted name of every setting, in order."""
    return (name for name, _ in _annotations())


def _annotations() -> Iterator[tuple[str, Any]]:
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            for inner, spec in field.annotation.model_fields.items():
                yield f"{name}.{spec.alias or inner}", spec.annotation
        else:
            yield name, field.annotation


class _Loader(yaml.SafeLoader):
    """Refuses a mapping that names a key twice, which YAML would let the last one win in silence."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a name must be plain text", key_node.start_mark)
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"{key} stands there twice", key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        tree = yaml.load(path.read_bytes(), _Loader)  # noqa: S506  (a SafeLoader)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror})") from None
    except yaml.constructor.ConstructorError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(f"{path}, line {line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # also no date, no UTF-8, endless brackets
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path} is not YAML{place}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} must hold settings by name")
    return tree


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
        return yaml.safe_load(text) if text else None
    except (yaml.YAMLError, ValueError, RecursionError):  # not YAML: the text itself, which its setting then judges
        return text


def _texts() -> Iterator[str]:
    """The settings whose values are texts: a key of digits stays a text, a folder called `no` a folder."""
    for name, annotation in _annotations():
        if set(get_args(annotation) or (annotation,)) <= {str, Path, SecretStr, type(None)}:
            yield name


def _put(tree: dict[str, Any], name: str, value: Any) -> None:
    section, _, leaf = name.partition(".")
    if not leaf:
        tree[section] = value
        return
    inner = tree.setdefault(section, {})
    if isinstance(inner, dict):
        inner[leaf] = value


def _sentence(error: ValidationError, origins: Mapping[str, str]) -> str:
    """One sentence for the first thing wrong: the name, where it was set, and what is expected; never the value."""
    first = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"] if not isinstance(part, int)) or "settings"
    origin = origins.get(name, "")
    where = f" (from {origin})" if origin not in {"", "default"} else ""
    if first["type"] == "extra_forbidden":
        name = next((known for known in origins if known.startswith(f"{name}.")), name)
        where = f" (from {origins[name]})" if name in origins else where
        return f"unknown setting {name}{where}"
    reason = "must be a path" if first["type"] == "path_type" else first["msg"].removeprefix("Value error, ")
    return f"setting {name}{where}: {reason[:1].lower()}{reason[1:]}"
