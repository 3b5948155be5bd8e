"""The settings: one place for each default, four layers, and a sentence for whatever is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from memd import config
from memd.config import ExtractionSettings, Secret, Settings
from memd.config.loading import plain
from memd.config.settings import MASK
from memd.errors import ConfigError
from memd.memory.store.json_store import open_store
from memd.push.signals import load_patterns

ROOT = Path(__file__).parents[2]


def test_config_yaml_says_what_the_code_says() -> None:
    """The shipped config.yaml holds every setting, in order, with the default of the code."""
    shipped = config.load(ROOT / "config.yaml", {})
    assert shipped.settings == config.load(environ={}, use_file=False).settings
    tree = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    listed = [
        f"{name}.{inner}" if isinstance(value, dict) else name
        for name, value in tree.items()
        for inner in (value if isinstance(value, dict) else [None])
    ]
    assert listed == list(config.names())


def test_every_setting_has_a_meaning() -> None:
    """Each line of config.yaml that sets something says what it means."""
    for line in (ROOT / "config.yaml").read_text(encoding="utf-8").splitlines():
        if ":" in line and not line.startswith("#") and not line.rstrip().endswith(":") and "categories" not in line:
            assert "#" in line, line


def test_later_layers_win_and_are_named(tmp_path: Path) -> None:
    """Flags override the environment, which overrides the file, which overrides the defaults; origins say so."""
    file = tmp_path / "memd.yaml"
    file.write_text("scheduler:\n  quiet_s: 10\n  flush_tokens: 100\ndrain:\n  workers: 3\n")
    environ = {"MEMD_SCHEDULER__QUIET_S": "20", "MEMD_DRAIN__WORKERS": "4"}
    found = config.load(file, environ, {"drain.workers": 5, "drain.concurrency": None})
    assert (found.settings.scheduler.quiet_s, found.settings.drain.workers) == (20, 5)
    assert found.settings.scheduler.flush_tokens == 100
    assert found.origins["scheduler.flush_tokens"] == str(file)
    assert found.origins["scheduler.quiet_s"] == "environment"
    assert found.origins["drain.workers"] == "flag"
    assert found.origins["drain.concurrency"] == "default"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("quite_s: 3", "unknown setting quite_s"),
        ("scheduler:\n  quite_s: 3", "unknown setting scheduler.quite_s"),
        ("apply:\n  eviction: hybrid", "setting apply.eviction"),
        ("apply:\n  eviction: hybrid", "is gone: a full memory is trimmed by one rule; remove it (see CHANGELOG.md)"),
        ("scheduler:\n  quiet_s: 3000", "setting scheduler.quiet_s"),
        ("scheduler:\n  quiet_s: soon", "setting scheduler.quiet_s"),
        ("scheduler:\n  quiet_s: 100\n  max_wait_s: 50", "max_wait_s (50) must not be shorter than quiet_s (100)"),
        ("apply:\n  max_facts: 5", "setting apply.max_facts"),
        ("drain: [1]", "setting drain"),
        ("a: [", "is not YAML in line"),
        ("- a", "must be a mapping of settings"),
        ("enabled: true\nenabled: false", "twice"),
        ("scheduler:\n  quiet_s: 1\n  quiet_s: 2", "line 3: quiet_s is set twice"),
        ("? [a]\n: 1", "line 1: a name must be plain text"),
        ("data_dir: 2024-13-45", "is not YAML"),
        ("a: " + "[" * 20_000, "is not YAML"),
        ("data_dir: 7", "setting data_dir"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """An unknown key, a value out of range, a contradiction or broken YAML stops the start, naming the setting."""
    file = tmp_path / "memd.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.load(file, {})
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_an_error_when_it_was_named(tmp_path: Path) -> None:
    """A config file that was asked for must be there."""
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path / "none.yaml", {})


def test_secrets_are_not_shown() -> None:
    """Neither repr nor JSON of the settings holds a key or a password."""
    found = config.load(
        environ={"MEMD_EXTRACTION__API_KEY": "hush-1", "MEMD_REDIS_URL": "redis://:hush-2@localhost"}, use_file=False
    ).settings
    assert "hush" not in repr(found) + str(config.plain(found))


def test_a_child_process_gets_the_same_settings() -> None:
    """The environment made from settings gives them back, lists, secrets and None included."""
    flags: dict[str, Any] = {
        "client.apps": ["shop", "desk"],
        "redis_url": "redis://:hush@localhost",
        "scheduler.quiet_s": 0.5,
        "data_dir": "/var/lib/memd",
    }
    settings = config.load(environ={}, flags=flags, use_file=False).settings
    again = config.load(environ=config.as_environment(settings), use_file=False).settings
    assert again == settings


def test_a_part_reports_the_origins_that_its_parent_found() -> None:
    """`memd up` gives its parts every setting by the environment, which would hide what the person has set, and how."""
    found = config.load(environ={"MEMD_DRAIN__WORKERS": "3"}, flags={"scheduler.quiet_s": 9}, use_file=False)
    environ = config.as_environment(found.settings, found.origins)
    again = config.load(environ=environ, flags={"http.port": 9}, use_file=False)
    assert again.origins == {**found.origins, "http.port": "flag"}
    assert again.settings.drain.workers == 3
    with pytest.raises(ConfigError, match="unset it"):
        config.load(environ={"MEMD_ORIGINS": "[]"}, use_file=False)


@pytest.mark.parametrize("text", ["42", "007", "no", "2024-13-45", "a: b: c", "[", "#x"])
def test_a_text_from_the_environment_is_taken_as_it_is(text: str) -> None:
    """A user of digits, a key with a colon, a folder called `no`: YAML's idea of them does not matter."""
    environ = {"MEMD_CLIENT__DEFAULT_USER": text, "MEMD_EXTRACTION__API_KEY": text, "MEMD_DATA_DIR": text}
    found = config.load(environ=environ, use_file=False).settings
    assert found.client.default_user == text
    assert found.extraction.api_key is not None
    assert found.extraction.api_key.reveal() == text
    assert found.data_dir == Path(text)


def test_a_number_from_the_environment_must_be_one() -> None:
    """What is no text is read as YAML, and judged by its setting when it is not even that."""
    with pytest.raises(ConfigError, match=r"setting scheduler\.quiet_s"):
        config.load(environ={"MEMD_SCHEDULER__QUIET_S": "2024-13-45"}, use_file=False)


def test_the_data_folder_may_lie_at_home() -> None:
    """A leading ~ is the home folder."""
    assert config.load(environ={"MEMD_DATA_DIR": "~/memd"}, use_file=False).settings.data_dir == Path.home() / "memd"


def test_no_file_means_no_file(tmp_path: Path) -> None:
    """Without a file wanted, MEMD_CONFIG is not read either."""
    file = tmp_path / "memd.yaml"
    file.write_text("scheduler:\n  quiet_s: 10\n")
    environ = {"MEMD_CONFIG": str(file)}
    assert config.load(environ=environ).settings.scheduler.quiet_s == 10
    assert config.load(environ=environ, use_file=False).settings.scheduler.quiet_s == 30


@pytest.mark.long
@pytest.mark.parametrize("brackets", [200_000, 5_000])
def test_endless_brackets_are_no_yaml(tmp_path: Path, brackets: int) -> None:
    """However deep a file is nested, it is refused by a sentence; the fast reader would end the process."""
    for text in ("a: " + "[" * brackets, "- " * brackets, "a: " + "{a: " * brackets):
        file = tmp_path / "memd.yaml"
        file.write_text(text)
        with pytest.raises(ConfigError, match="is not YAML"):
            config.load(file, {})
        (tmp_path / "own.yaml").write_text(text)
        with pytest.raises(ConfigError, match="not YAML"):
            load_patterns(tmp_path)


def test_only_a_bare_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may be called ~backup; ~ without a home is told in a sentence."""
    assert config.load(environ={"MEMD_DATA_DIR": "~backup/x"}, use_file=False).settings.data_dir == Path("~backup/x")
    assert config.load(environ={}, flags={"data_dir": Path("/x")}, use_file=False).settings.data_dir == Path("/x")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: (_ for _ in ()).throw(KeyError()))
    with pytest.raises(ConfigError, match=r"setting data_dir \(from environment\): there is no home folder"):
        config.load(environ={"MEMD_DATA_DIR": "~/x"}, use_file=False)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"client.apps": ["shop\n"]}, "setting client.apps (from flag): expected str matching regex"),
        ({"http.hosts": ["h\n"]}, "setting http.hosts (from flag): expected str matching regex"),
        ({"http.hosts": "memory.example"}, 'setting http.hosts (from flag): expected a list, such as ["a", "b"]'),
        ({"log.level": "hush"}, "setting log.level (from flag): expected one of debug, info, warning, error"),
        ({"extraction.prices": {5: {}}}, "setting extraction.prices (from flag): its names must be text"),
        ({"extraction.prices": {"m": 3}}, "setting extraction.prices.m (from flag): expected object, got int"),
        ({"extraction.api_key": 5}, "setting extraction.api_key (from flag): must be text"),
        ({"drain.workers": "hush"}, "setting drain.workers (from flag): expected int, got str"),
    ],
)
def test_a_bad_value_is_named_and_not_shown(flags: dict[str, Any], sentence: str) -> None:
    """The setting, where it was set, what is expected."""
    with pytest.raises(ConfigError) as caught:
        config.load(environ={}, flags=flags, use_file=False)
    assert str(caught.value).startswith(sentence)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("text", ["yes", "on", "y", "true", "True", "1"])
def test_a_switch_may_be_set_in_words(text: str) -> None:
    """In the environment or in quotes: as people write it."""
    assert config.load(environ={"MEMD_HTTP__ENABLED": text}, use_file=False).settings.http.enabled
    assert config.load(environ={}, flags={"http.enabled": text}, use_file=False).settings.http.enabled


def test_settings_made_by_hand_hide_their_secrets() -> None:
    """A key that was given as a text is one all the same."""
    found = Settings(redis_url=cast("Secret", "redis://:hush@h"), extraction=ExtractionSettings(api_key=Secret("hush")))
    assert found.redis_url is not None
    assert found.redis_url.reveal() == "redis://:hush@h"
    assert "hush" not in repr(found) + str(config.plain(found))


@pytest.mark.parametrize(
    "address",
    [
        "http://me:hush@host:80/x",
        "https://hush@host",
        "http://me:hu/hush@host",
        "http://me@host/v1?key=hush&a=hush",
        "http://@host?hush@hush",
        "http://hu?hush@host",
    ],
)
def test_credentials_in_an_address_are_not_shown(address: str) -> None:
    """Names, passwords and parameters are masked where settings are shown, and whole where they are used."""
    found = config.load(use_file=False, environ={}, flags={"extraction.base_url": address})
    shown = config.plain(found.settings)["extraction"]["base_url"]
    assert "hush" not in shown
    assert "@host" in shown or address.index("?") < address.rindex("@")
    again = config.load(use_file=False, environ=config.as_environment(found.settings))
    assert again.settings.extraction.base_url == address


@pytest.mark.parametrize("name", ["data_dir", "extraction.model", "redis_url"])
def test_a_setting_that_is_no_text_is_refused(name: str) -> None:
    """Bytes of the environment that are not UTF-8 are an error in one sentence, whatever the setting."""
    variable = config.loading.ENV_PREFIX + name.upper().replace(".", "__")
    with pytest.raises(ConfigError, match=rf"setting {name} \(environment\) is not UTF-8"):
        config.load(use_file=False, environ={variable: "/tmp/\udcff"})  # noqa: S108  (never made)


@pytest.mark.parametrize("own", [{"extraction.extractor": "openai"}, {"extraction.class": "a.B"}])
def test_batches_are_for_one_protocol_only(own: dict[str, Any]) -> None:
    """Two settings that contradict each other stop the start, instead of one of them being ignored."""
    with pytest.raises(ConfigError, match="extraction: mode batch needs the Message Batches API"):
        config.load(environ={}, flags={"extraction.mode": "batch", **own}, use_file=False)


def test_the_options_of_a_store_reach_it_and_are_not_shown() -> None:
    """They may hold a password; a child process gets them as they are."""
    settings = config.load(
        environ={}, flags={"store.options": {"dsn": "postgresql://me:secret@db"}}, use_file=False
    ).settings
    assert plain(settings)["store"]["options"] == {"dsn": MASK}
    assert (
        config.load(environ=config.as_environment(settings), use_file=False).settings.store.options
        == settings.store.options
    )
    with pytest.raises(ConfigError, match=r"store\.options"):
        open_store(settings)
