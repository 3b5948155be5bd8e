"""The console's page of settings: each with its value and its source; no secret and no password."""

from __future__ import annotations

from typing import Any

import pytest
from support import free_port
from support.console_visits import Visitor, console
from support.http_support import ALL

from memd import config
from memd.config import as_environment
from memd.config.loading import ORIGINS
from memd.http.console.configuration import rows_of
from memd.http.keyring import Users


def test_each_setting_has_its_value_and_its_source(server_url: str) -> None:
    """As `memd up` tells its parts: what a flag, the environment or nobody has set; only those that are set, too."""
    flags: dict[str, Any] = {"drain.workers": 7, "extraction.base_url": "http://me:hush@proxy/v1?key=hush"}
    told = config.load(environ={"MEMD_SCHEDULER__QUIET_S": "60"}, flags=flags, use_file=False)
    environ = {ORIGINS: as_environment(told.settings, told.origins)[ORIGINS]}
    secret = {"extraction__base_url": flags["extraction.base_url"], "extraction__api_key": "hush-2"}
    with console(server_url, environ=environ, drain__workers=7, **secret) as site:
        page = Visitor(site).get("/console/settings")
        assert "hush" not in page.html
        for row in (
            "drain.workers 7 default: 2 flag",
            "scheduler.quiet_s 60 default: 30 environment",
            "scheduler.tick_ms 250 default",
            "proxy/v1",
            "dead.raw_cap 10000 default",
            "said.enabled yes default",
        ):
            assert row in page.text
        only = Visitor(site).get("/console/settings?set=1")
        assert ("drain.workers" in only.text, "tick_ms" in only.text) == (True, False)
        of_ana = site.give("desk", Users(frozenset({"ana"})), ("read", "console"))
        Visitor(site, of_ana).get("/console/settings", 404)
        assert "Settings" not in Visitor(site, of_ana).get("/console/users").text
        looking = Visitor(site, site.give("desk", ALL, ("read", "console")))
        assert "设置项" in looking.get("/console/settings", language="zh-CN").text


def test_a_file_is_named(tmp_path: Any) -> None:
    """The path of the file that sets it."""
    file = tmp_path / "memd.yaml"
    file.write_text("scheduler: {quiet_s: 9}")
    found = config.load(file, environ={}, flags={"http.port": free_port()})
    rows = {row.name: row for row in rows_of(found.settings, found.origins)}
    assert (rows["scheduler.quiet_s"].origin, rows["scheduler.quiet_s"].file) == ("file", str(file))
    assert (rows["http.port"].origin, rows["http.port"].section) == ("flag", "http")
    assert (rows["data_dir"].origin, rows["data_dir"].section) == ("default", "")
    assert list(rows) == list(config.names())


@pytest.mark.parametrize("name", ["redis_url", "extraction.api_key"])
def test_secrets_are_masked(name: str) -> None:
    """As in memd config."""
    found = config.load(environ={}, flags={name: "redis://:hush@host"}, use_file=False)
    assert "hush" not in str(list(rows_of(found.settings, found.origins)))
