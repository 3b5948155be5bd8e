"""The settings: read once, checked, frozen, passed down. Each section of config.yaml is a class here."""

from memd.config.loading import LoadedSettings, as_environment, by_name, load, plain
from memd.config.settings import (
    MOST_FACTS,
    ApplySettings,
    ClientSettings,
    ExtractionSettings,
    HttpSettings,
    PriceSettings,
    RecallSettings,
    RedactionSettings,
    SaidSettings,
    Secret,
    SessionSettings,
    Settings,
    StoreSettings,
    VectorsSettings,
    names,
)

__all__ = [
    "MOST_FACTS",
    "ApplySettings",
    "ClientSettings",
    "ExtractionSettings",
    "HttpSettings",
    "LoadedSettings",
    "PriceSettings",
    "RecallSettings",
    "RedactionSettings",
    "SaidSettings",
    "Secret",
    "SessionSettings",
    "Settings",
    "StoreSettings",
    "VectorsSettings",
    "as_environment",
    "by_name",
    "load",
    "names",
    "plain",
]
