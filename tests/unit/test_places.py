"""Where memd looks when nobody says: whose config.yaml it is, and which folder holds the data."""

from __future__ import annotations

from pathlib import Path

import pytest

from memd import config
from memd.errors import ConfigError

FOREIGN = [
    "",
    "- a\n- list\n",
    "just text",
    "server:\n  port: 8080\n",
    "server:\n  host: 0.0.0.0\n  port: 8080\ndatabase:\n  url: postgres://x\n",
    "data_dir: ./data\nbatch_size: 32\nscheduler: cosine\n",
    "log:\n  level: INFO\n  format: '%(message)s'\nhttp:\n  host: 0.0.0.0\n",
    "title: 我的项目\ntheme: minima\n",
    "enabled: maybe\n",
    "key: {{ .Values.key }}\n",
    "site: [unclosed\n",
    "a: 1\na: 2\n",
    "model:\n  name: x\nextraction:\n  model: y\n  pages: 3\n",
    "\x00",
]
OURS = [
    "drain:\n  workers: 3\n",
    "data_dir: /x\nscheduler:\n  quiet_s: 7\ndrain:\n  workers: 3\n",
    "redis_url: redis://h:1\nhttp:\n  port: 1\nlog:\n  level: debug\n",
    "data_dir: /x\n",
    "memd:\n  drain:\n    workers: 3\nserver:\n  port: 8080\nlog: loud\n",
]
MISTAKES = [
    ("drain:\n  wokers: 3\n  linger_s: 1\nscheduler:\n  quiet_s: 1\n", "unknown setting drain.wokers"),
    ("memd:\n  drain:\n    wokers: 3\n", "unknown setting drain.wokers"),
    ("drain:\n  workers: many\n", "setting drain.workers"),
    ("drain:\n  workers: [\n", "is not YAML"),
    ("memd:\n  drain: {\n", "is not YAML"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, with a home elsewhere."""
    here = tmp_path / "my project ä"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return here


@pytest.mark.parametrize("text", FOREIGN)
def test_a_config_file_of_something_else_is_left_alone(folder: Path, text: str) -> None:
    """It changes no setting, stops nothing, and the reason is at hand."""
    (folder / "config.yaml").write_text(text)
    found = config.load(environ={})
    assert found.settings == config.load(environ={}, use_file=False).settings
    assert set(found.origins.values()) == {"default"}
    assert found.file
    assert not text or str(folder / "config.yaml") in found.file.unread or "config.yaml" in found.file.unread


@pytest.mark.parametrize("text", OURS)
def test_memds_own_config_file_is_read(folder: Path, text: str) -> None:
    """Flat, as always, or in the section `memd:` of a file that others read as well."""
    (folder / "config.yaml").write_text(text)
    found = config.load(environ={})
    assert found.file
    assert not found.file.unread
    assert "config.yaml" in found.origins.values()


@pytest.mark.parametrize(("text", "sentence"), MISTAKES)
def test_a_mistake_in_memds_own_file_stops_the_start(folder: Path, text: str, sentence: str) -> None:
    """A file that is memd's is never passed over for its mistakes."""
    (folder / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        config.load(environ={})


@pytest.mark.parametrize("text", ["server:\n  host: x\n", "title: x\n", "site: [unclosed\n"])
def test_a_file_that_is_named_must_be_memds(folder: Path, text: str) -> None:
    """`--config` and MEMD_CONFIG read any file, and say what is wrong with it."""
    (folder / "other.yaml").write_text(text)
    with pytest.raises(ConfigError):
        config.load(environ={"MEMD_CONFIG": "other.yaml"})
    with pytest.raises(ConfigError):
        config.load(Path("other.yaml"), {})


def test_the_data_folder_is_one_wherever_memd_is_called(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the user's data home, unless a folder `memd-data` is here already; settings come before both."""
    home = folder.parent / "home" / ".local" / "share" / "memd"
    assert config.load(environ={}).settings.data_dir == home
    assert config.load(environ={"XDG_DATA_HOME": "/data"}).settings.data_dir == Path("/data/memd")
    assert config.load(environ={"XDG_DATA_HOME": "not/absolute"}).settings.data_dir == home
    (folder / "memd-data").mkdir()
    assert config.load(environ={"XDG_DATA_HOME": "/data"}).settings.data_dir == folder / "memd-data"
    assert config.load(environ={"MEMD_DATA_DIR": "/x"}).settings.data_dir == Path("/x")
    (folder / "config.yaml").write_text("data_dir: null\n")
    assert config.load(environ={}).settings.data_dir == folder / "memd-data"


@pytest.mark.parametrize("name", ["flags", "environment", "file"])
def test_an_empty_data_folder_is_the_default(folder: Path, name: str) -> None:
    """Wherever it is set. The current folder was used, and made private."""
    (folder / "config.yaml").write_text('data_dir: ""\ndrain:\n  workers: 1\n' if name == "file" else "")
    environ = {"XDG_DATA_HOME": "/data"} | ({"MEMD_DATA_DIR": ""} if name == "environment" else {})
    found = config.load(environ=environ, flags={"data_dir": ""} if name == "flags" else {})
    assert found.settings.data_dir == Path("/data/memd")


@pytest.mark.parametrize("kind", ["file", "link to nothing", "link to a folder"])
def test_something_else_named_memd_data_is_refused(folder: Path, kind: str) -> None:
    """With its path, and how to choose a folder. memd would have made the link's target private."""
    target = folder.parent / "photos"
    if kind == "file":
        (folder / "memd-data").touch()
    else:
        (folder / "memd-data").symlink_to(target)
    if kind == "link to a folder":
        target.mkdir()
    with pytest.raises(ConfigError, match=r"memd-data.*not used.*MEMD_DATA_DIR"):
        config.load(environ={"XDG_DATA_HOME": "/data"})
    assert config.load(environ={"MEMD_DATA_DIR": "./memd-data"}).settings.data_dir == Path("memd-data")


@pytest.mark.parametrize("mark", ["store.id", "server/server.conf"])
def test_a_link_to_a_data_folder_is_used(folder: Path, mark: str) -> None:
    """memd made the folder, so it is private already."""
    made = folder.parent / "disk" / mark
    made.parent.mkdir(parents=True)
    made.touch()
    (folder / "memd-data").symlink_to(folder.parent / "disk")
    assert config.load(environ={}).settings.data_dir == folder / "memd-data"


@pytest.mark.parametrize("variable", ["XDG_DATA_HOME", "MEMD_DATA_DIR"])
def test_a_path_that_is_not_utf8_is_refused(variable: str) -> None:
    """It could not be printed as JSON, nor passed to the parts of `memd up`."""
    with pytest.raises(ConfigError, match=r"data_dir.*not UTF-8"):
        config.load(environ={variable: "/data/\udcff\udcfe"})


def test_a_current_folder_that_is_not_utf8_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the data folder lies in it; elsewhere a foreign file in it is reported as text that can be printed."""
    odd = folder / "\udcff"
    odd.mkdir()
    monkeypatch.chdir(odd)
    with pytest.raises(ConfigError, match=r"data_dir.*not UTF-8"):
        config.load(environ={"MEMD_DATA_DIR": "here"})
    (odd / "config.yaml").write_text("title: x\n")
    found = config.load(environ={"MEMD_DATA_DIR": "/x"})
    assert found.file
    assert found.file.unread.encode()


def test_a_large_file_that_nobody_named_is_not_parsed(folder: Path) -> None:
    """30 MB took minutes at every command. This one repeats a name, so it would be refused if it were parsed."""
    line = "drain: {workers: 2}\n"
    (folder / "config.yaml").write_text(line + "k: v\n" * 60_000)
    found = config.load(environ={})
    assert found.file
    assert "larger than 256 KiB" in found.file.unread


def test_an_empty_home_is_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python takes it for the root folder."""
    monkeypatch.setenv("HOME", "")
    with pytest.raises(ConfigError, match="MEMD_DATA_DIR"):
        config.load(environ={})
    with pytest.raises(ConfigError, match="HOME is empty"):
        config.load(environ={"MEMD_DATA_DIR": "~/memd"})
    assert config.load(environ={"XDG_DATA_HOME": "/data"}).settings.data_dir == Path("/data/memd")


def test_without_a_home_the_data_folder_must_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence says so, and a setting is enough."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda _: (_ for _ in ()).throw(KeyError()))
    with pytest.raises(ConfigError, match="MEMD_DATA_DIR"):
        config.load(environ={})
    assert config.load(environ={"MEMD_DATA_DIR": "/x"}).settings.data_dir == Path("/x")
