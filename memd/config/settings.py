"""Every setting with its type, bounds and default. Defaults are written here and nowhere else in the code.

`config.yaml` repeats all of them with unit and reason, and a test compares the two. Annotations are not strings here:
msgspec would evaluate them anew in each process, which takes as long as Python's own start.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from msgspec import Meta, Struct, field, structs

AppName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}\Z")]
HostName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9.:\[\]-]{1,255}\Z")]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1, le=10_000_000)]
Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]
Tokens = Annotated[int, Meta(ge=1, le=1_000_000_000_000)]

MOST_FACTS = 5_000
"""The highest `apply.max_facts`: what a memory of that size costs stands in docs/moving.md."""

HERE = "memd-data"
"""The data folder in the current folder: used where it exists. `load` looks further (memd.config.places)."""

MASK = "**********"


class Secret:
    """A text that no repr, log or listing shows; `reveal` returns it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Keep the text."""
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret('{MASK}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


class Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A frozen group of settings; an unknown key is an error. `load` checks the values, the constructor does not.

    A Struct of msgspec, which is defined in a tenth of the time of a pydantic model; every command waits for it.
    """


def _hide(section: Section, name: str) -> None:
    """Wrap secrets that code passed as plain text, so that no repr shows them."""
    if isinstance(value := getattr(section, name), str):
        structs.force_setattr(section, name, Secret(value))


def _zone(name: str) -> tzinfo:
    """The time zone of a name. Raises ValueError."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # unknown, a folder of zones, no name at all
        raise ValueError("timezone must be an IANA name, such as Europe/Berlin (the package tzdata has all)") from None


def _is_plain_address(address: str) -> bool:
    """Whether it is an http(s) address that holds no secret."""
    try:
        parts = urlsplit(address)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and "@" not in parts.netloc
            and ((parts.port or 1) > 0 and not parts.query)
        )
    except ValueError:
        return False


class ServerSettings(Section, frozen=True):
    appendfsync: Literal["everysec", "always"] = "everysec"
    port: Annotated[int, Meta(ge=1, le=65_535)] | None = None


class ClientSettings(Section, frozen=True):
    default_user: str | None = None
    apps: tuple[AppName, ...] = ()
    max_read_bytes: Annotated[int, Meta(ge=1_024, le=67_108_864)] = 8_388_608
    max_push_bytes: Annotated[int, Meta(ge=1_024, le=67_108_864)] = 1_048_576
    max_messages: Annotated[int, Meta(ge=1, le=5_000)] = 1_000
    max_message_chars: Annotated[int, Meta(ge=100, le=10_000_000)] = 100_000

    @property
    def read_bytes(self) -> int:
        """The bytes of a push that a door reads: at least those that may be left of it."""
        return max(self.max_read_bytes, self.max_push_bytes)


class FilteringSettings(Section, frozen=True):
    require_reply: bool = False


class RedactionSettings(Section, frozen=True):
    pii: bool = False


class SignalsSettings(Section, frozen=True):
    folder: Path | None = None


class InboxSettings(Section, frozen=True):
    receipt_ttl_s: Seconds = 86_400.0
    known_ttl_s: Seconds = 3_600.0
    memory_headroom: Annotated[float, Meta(gt=0.1, le=1)] = 0.9
    min_replicas: Annotated[int, Meta(ge=0, le=100)] = 0
    allow_unfit_server: bool = False


class DeadSettings(Section, frozen=True):
    raw_cap: Count = 10_000
    raw_cap_mb: Annotated[int, Meta(ge=1, le=1_000_000)] = 64
    raw_ttl_s: Seconds = 2_592_000


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
    thread_extractions_per_day: Annotated[int, Meta(ge=1, le=1_000)] | None = None


class PriceSettings(Section, frozen=True):
    """The prices of one model, in US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cache_read: Dollars
    cache_write: Dollars


# Anthropic's price list of October 2026; the price of a cache write is that of a cache kept for an hour.
PRICES = {"claude-haiku-5-5": PriceSettings(input=0.10, output=0.50, cache_read=0.01, cache_write=0.20)}


class ExtractionSettings(Section, frozen=True):
    extractor: Literal["auto", "anthropic", "openai", "rules"] = "auto"
    class_: str | None = field(default=None, name="class")
    mode: Literal["now", "batch"] = "now"
    batch_poll_s: Annotated[float, Meta(ge=0.05, le=3_600)] = 60.0
    model: str = "claude-haiku-5-5"
    base_url: str | None = None
    api_key: Secret | None = None
    max_tokens: Annotated[int, Meta(ge=256, le=21_000)] = 16_384
    deadline_s: Annotated[float, Meta(ge=0.1, le=90)] = 90.0
    max_reply_bytes: Annotated[int, Meta(ge=10_000)] = 2_097_152
    context_messages: Annotated[int, Meta(ge=0, le=20)] = 2
    language: Annotated[str, Meta(pattern=r"^(user|[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3})\Z")] = "user"
    timezone: str = "UTC"
    prices: Mapping[str, PriceSettings] = field(default_factory=PRICES.copy)

    def __post_init__(self) -> None:
        _hide(self, "api_key")
        if self.mode == "batch" and (self.class_ is not None or self.extractor == "openai"):
            raise ValueError(
                "mode batch needs the Message Batches API, which only the extractor anthropic has: set mode to now"
            )
        _zone(self.timezone)

    @property
    def zone(self) -> tzinfo:
        """Where the users are whose messages do not say it."""
        return _zone(self.timezone)


class ApplySettings(Section, frozen=True):
    confidence_threshold: Share = 0.7
    max_facts: Annotated[int, Meta(ge=10, le=MOST_FACTS)] = 300
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
    archive_cap: Annotated[int, Meta(ge=0, le=10_000)] = 200
    ledger_cap: Annotated[int, Meta(ge=100, le=1_000_000)] = 20_000
    sensitive: Literal["keep", "drop", "doubtful"] = "keep"
    keep_refused: Annotated[int, Meta(ge=0, le=200)] = 0
    session_facts: bool = True
    profile: bool = True

    @property
    def labels_sensitive(self) -> bool:
        """Whether the extractor is asked which new facts are sensitive."""
        return self.sensitive != "keep"


class SaidSettings(Section, frozen=True):
    enabled: bool = True
    days: Annotated[int, Meta(ge=1, le=36_500)] = 180
    max_bytes: Annotated[int, Meta(ge=16_384, le=16_777_216)] = 2_097_152
    max_turns: Annotated[int, Meta(ge=10, le=50_000)] = 4_000


class StoreSettings(Section, frozen=True):
    class_: str = field(default="memd.memory.store.JsonStore", name="class")
    url: Secret | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    network: bool = False
    shared: bool = False
    cache_documents: Annotated[int, Meta(ge=0, le=1_000_000)] = 1_000

    def __post_init__(self) -> None:
        _hide(self, "url")


class RecallSettings(Section, frozen=True):
    injection_enabled: bool = True
    max_injection_tokens: Annotated[int, Meta(ge=100, le=8_000)] = 2_000
    correction_tokens: Annotated[int, Meta(ge=0, le=8_000)] = 500
    excerpt_tokens: Annotated[int, Meta(ge=0, le=4_000)] = 1_000
    tokens_per_estimate: Annotated[float, Meta(ge=0.3, le=2)] = 1.0
    order: Literal["stable", "established"] = "stable"
    with_user_memory: bool = True
    embedder: str | None = None
    cache_mb: Annotated[int, Meta(ge=1, le=1_000_000)] = 256


class VectorsSettings(Section, frozen=True):
    url: str | None = None
    model: Annotated[str, Meta(max_length=200)] = ""
    dimensions: Annotated[int, Meta(ge=1, le=4_096)] | None = None
    api_key: Secret | None = None
    query_s: Annotated[float, Meta(ge=0.01, le=30)] = 1.0
    batch_s: Annotated[float, Meta(ge=0.1, le=120)] = 20.0
    batch: Annotated[int, Meta(ge=1, le=2_048)] = 64
    min_cosine: Annotated[float, Meta(ge=-1, le=1)] = 0.3

    def __post_init__(self) -> None:
        _hide(self, "api_key")
        if self.url is None:
            return
        if not _is_plain_address(self.url):
            raise ValueError("url must be an http(s) address without user and password, such as https://host/v1")
        if not self.model:
            raise ValueError("model is missing: the name of the embedding model at url")


class SessionSettings(Section, frozen=True):
    keep_days: Annotated[int, Meta(ge=1, le=36_500)] = 90
    strategy: Literal["recent", "auto", "transcript"] = "recent"
    max_tokens: Count = 40_000
    compact_tokens: Count = 30_000
    keep_tokens: Count = 15_000
    model_tokens: Count = 131_072
    auto_share: Annotated[float, Meta(gt=0, le=1)] = 0.3
    auto_messages: Annotated[int, Meta(ge=2, le=100_000)] = 30
    auto_keep: Annotated[int, Meta(ge=1, le=100_000)] = 10
    transcript_tokens: Count = 50_000
    summary_tokens: Annotated[int, Meta(ge=100, le=8_000)] = 2_000
    summary_deadline_s: Annotated[float, Meta(ge=0.1, le=90)] = 20.0
    whole_turns: Annotated[int, Meta(ge=1, le=100_000)] = 10
    tool_input_chars: Annotated[int, Meta(ge=100, le=10_000_000)] = 500
    tool_result_chars: Annotated[int, Meta(ge=100, le=10_000_000)] = 1_000
    tool_results: Annotated[int, Meta(ge=0, le=100_000)] = 3
    offload_chars: Annotated[int, Meta(ge=100, le=10_000_000)] = 1_000

    def __post_init__(self) -> None:
        if not self.keep_tokens + self.summary_tokens < self.compact_tokens <= self.max_tokens:
            raise ValueError(
                f"keep_tokens ({self.keep_tokens}) + summary_tokens ({self.summary_tokens}) must be less than "
                f"compact_tokens ({self.compact_tokens}), which must not be more than max_tokens ({self.max_tokens})"
            )
        if self.auto_keep >= self.auto_messages:
            raise ValueError(f"auto_keep ({self.auto_keep}) must be less than auto_messages ({self.auto_messages})")


class HttpSettings(Section, frozen=True):
    enabled: bool = False
    host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8477
    hosts: tuple[HostName, ...] = ()
    tokens: Path | None = None
    console: bool = False
    read_timeout_s: Annotated[float, Meta(ge=0.1, le=300)] = 10.0
    request_timeout_s: Annotated[float, Meta(ge=1, le=600)] = 30.0
    keep_alive_s: Annotated[int, Meta(ge=1, le=3_600)] = 75
    max_connections: Annotated[int, Meta(ge=2, le=100_000)] = 500


class EventsSettings(Section, frozen=True):
    keep: Annotated[int, Meta(ge=0, le=10_000_000)] = 0


class MetricsSettings(Section, frozen=True):
    port: Annotated[int, Meta(ge=1, le=65_535)] | None = None
    host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"


class TracingSettings(Section, frozen=True):
    enabled: bool = False


class LogSettings(Section, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "pretty"] = "auto"


class Settings(Section, frozen=True):
    """All settings, in the order of the flow. `config.yaml` explains each one."""

    data_dir: Path = Path(HERE)
    redis_url: Secret | None = None
    enabled: bool = True
    server: ServerSettings = ServerSettings()
    client: ClientSettings = ClientSettings()
    filtering: FilteringSettings = FilteringSettings()
    redaction: RedactionSettings = RedactionSettings()
    signals: SignalsSettings = SignalsSettings()
    inbox: InboxSettings = InboxSettings()
    dead: DeadSettings = DeadSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    drain: DrainSettings = DrainSettings()
    budget: BudgetSettings = BudgetSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    apply: ApplySettings = ApplySettings()
    said: SaidSettings = SaidSettings()
    store: StoreSettings = StoreSettings()
    recall: RecallSettings = RecallSettings()
    vectors: VectorsSettings = VectorsSettings()
    session: SessionSettings = SessionSettings()
    http: HttpSettings = HttpSettings()
    events: EventsSettings = EventsSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()
    log: LogSettings = LogSettings()

    def __post_init__(self) -> None:
        _hide(self, "redis_url")
        if self.vectors.url is not None and self.recall.embedder is not None:
            raise ValueError("vectors.url and recall.embedder are two embedders: set one of them to null")


def names() -> Iterator[str]:
    """The dotted name of every setting, in order."""
    return (name for name, _ in kinds())


@cache  # msgspec reads the annotations anew each time: 3 ms
def kinds() -> tuple[tuple[str, Any], ...]:
    """The dotted name of every setting, in order, with its type."""
    found: list[tuple[str, Any]] = []
    for spec in structs.fields(Settings):
        if isinstance(spec.type, type) and issubclass(spec.type, Section):
            found += ((f"{spec.name}.{inner.encode_name}", inner.type) for inner in structs.fields(spec.type))
        else:
            found.append((spec.name, spec.type))
    return tuple(found)
