"""The files of docs/deploy: every key, command, setting, route and name in them exists. test_deploy_runs runs them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import ROOT

from memd import config
from memd.cli.app import COMMANDS, load
from memd.http.hosts import HostCheck
from memd.http.routes import operations

DEPLOY = ROOT / "docs" / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS: list[dict[str, Any]] = [
    document
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
]
PODS = {one["metadata"]["name"]: one["spec"]["template"] for one in MANIFESTS if "template" in one.get("spec", {})}

SERVICE_KEYS = {
    "build", "cap_drop", "command", "depends_on", "deploy", "env_file", "environment", "healthcheck", "image", "init",
    "ports", "read_only", "restart", "security_opt", "shm_size", "stop_grace_period", "tmpfs", "user", "volumes",
}  # fmt: skip
VERSIONS = {
    "ConfigMap": "v1", "Service": "v1", "Job": "batch/v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1",
}  # fmt: skip
EXPOSED_AT_MOST = 20
"""Tenths, as `systemd-analyze security` counts: 100 is a service without any protection."""


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, dict[str, str]]:
    """What secrets.sh writes: the variables of each file."""
    subprocess.run([DEPLOY / "secrets.sh"], cwd=tmp_path, check=True)
    files = sorted(tmp_path.iterdir())
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)
    return {file.name: dict(line.split("=", 1) for line in file.read_text().splitlines()) for file in files}


def check_commands(words: list[str]) -> None:
    """Every `memd …` among these words, or in a line for a shell, is a command."""
    found = re.findall(r"\bmemd ([a-z]+)(?: ([a-z]+))?(?= |$)", " ".join(words).removeprefix("/opt/memd/bin/"))
    for name, inner in found:
        assert name in COMMANDS, name
        group = getattr(load(name), "commands", None)
        assert group is None or inner in group, (name, inner)


def check_settings(environ: dict[str, str]) -> None:
    """The settings that these variables give are memd's, and valid. Raises ConfigError."""
    config.load(environ={"HOME": "/var/lib/memd", **environ}, use_file=False)


def is_route(path: str) -> bool:
    return path in {operation.path for operation in operations()}


def test_the_passwords_are_new_agree_and_are_never_replaced(secrets: dict[str, dict[str, str]], tmp_path: Path) -> None:
    """Of both sides of each login; a second run changes nothing."""
    part, setup = secrets["memd.env"], secrets["setup.env"]
    assert part["PGPASSWORD"] == setup["STORE_PASSWORD_MEMD_WRITER"] != setup["POSTGRES_PASSWORD"]
    assert f":{setup['ACL_PASSWORD_MEMD_DAEMON']}@" in part["MEMD_REDIS_URL"]
    assert setup["PGPASSWORD"] == setup["POSTGRES_PASSWORD"]
    again = subprocess.run([DEPLOY / "secrets.sh"], cwd=tmp_path, capture_output=True, check=False)
    assert again.returncode != 0
    assert f"PGPASSWORD={part['PGPASSWORD']}\n" in (tmp_path / "memd.env").read_text()


def test_the_compose_file_names_what_it_has() -> None:
    """Keys that compose knows, services, conditions, volumes; health checks where others wait for them."""
    assert {key for key in COMPOSE if not key.startswith("x-")} == {"name", "services", "volumes"}
    for name, service in SERVICES.items():
        assert service.keys() <= SERVICE_KEYS, name
        for other, how in service.get("depends_on", {}).items():
            needs = {"service_healthy": "healthcheck", "service_completed_successfully": "command"}[how["condition"]]
            assert needs in SERVICES[other], (name, other)
            assert (needs == "healthcheck") == ("restart" in SERVICES[other]), (name, other)
        volumes = {volume.split(":")[0] for volume in service.get("volumes", [])}
        assert volumes <= COMPOSE["volumes"].keys(), name
    assert {"server", "postgres", "scheduler", "worker", "http"} <= SERVICES.keys()


def test_the_compose_files_commands_and_settings_are_memds(secrets: dict[str, dict[str, str]]) -> None:
    """With the variables of the files that each service gets."""
    for name, service in SERVICES.items():
        if service["image"] != "memd:latest":
            continue
        check_commands(service["command"])
        environ = {key: value for file in service["env_file"] for key, value in secrets[file].items()}
        check_settings(environ | service.get("environment", {}))
        assert service["user"].startswith(f"{_uid()}:"), name
    asked = re.findall(r"http://127.0.0.1:(\d+)(/\w+)", " ".join(SERVICES["http"]["healthcheck"]["test"]))
    assert [(port, is_route(path)) for port, path in asked] == [("8477", True)]
    assert SERVICES["http"]["ports"] == ["127.0.0.1:8477:8477"]


def test_the_image_has_what_it_copies_and_the_extras_exist() -> None:
    """The parts need PostgreSQL and HTTP; the versions are the pinned ones."""
    text = (DEPLOY / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        assert [source for source in line.split() if not (ROOT / source).exists()] == []
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (installed,) = re.findall(r"-c constraints\.txt '\.\[([\w,-]+)\]'", text)
    assert set(installed.split(",")) <= extras.keys()


def _uid() -> str:
    (uid,) = re.findall(r"^USER (\d+):\d+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    return str(uid)


def unit_lines(unit: Path) -> dict[str, list[str]]:
    """The values of each name of a unit, in their order."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_runs_a_command_of_memd_behind_the_same_walls(unit: Path) -> None:
    """Below NoNewPrivileges all units read the same; the settings are memd's; one process gets SIGTERM."""
    lines = unit_lines(unit)
    check_commands(lines["ExecStart"])
    check_settings(dict(value.replace("%S", "/var/lib").split("=", 1) for value in lines["Environment"]))
    assert (lines["KillMode"], lines["Restart"], lines["User"]) == (["mixed"], ["always"], ["memd"])
    walls = {one.read_text().partition("NoNewPrivileges")[2] for one in UNITS}
    assert len(walls) == 1


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """`systemd-analyze verify` has nothing to say, and `security` few things."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("not run: systemd-analyze is not installed (apt-get install systemd)")
    for unit in UNITS:
        text = unit.read_text().replace("/opt/memd/bin/memd", sys.executable)
        (tmp_path / unit.name.replace("@", "@1")).write_text(text)
    units = [str(file) for file in sorted(tmp_path.iterdir())]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    words = ["systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={EXPOSED_AT_MOST}"]
    done = subprocess.run([*words, *units], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_manifests_name_what_they_have() -> None:
    """Versions of kinds, labels that are selected, ports, volumes, secrets that the page makes."""
    page = (ROOT / "docs" / "deploy.md").read_text()
    secrets = set(re.findall(r"kubectl create secret generic (\S+)", page))
    for one in MANIFESTS:
        assert VERSIONS[one["kind"]] == one["apiVersion"]
        name, spec = one["metadata"]["name"], one.get("spec", {})
        labels = [pod["metadata"]["labels"] for pod in PODS.values()]
        if one["kind"] == "Service":
            assert spec["selector"] in labels
            ports = {port["name"] for box in boxes() for port in box.get("ports", [])}
            assert {port["targetPort"] for port in spec["ports"]} <= ports
        elif name in PODS and one["kind"] != "Job":
            assert spec["selector"]["matchLabels"] == PODS[name]["metadata"]["labels"]
        if name in PODS:
            pod = PODS[name]["spec"]
            claims = [claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])]
            volumes = {*(volume["name"] for volume in pod["volumes"]), *claims}
            mounts = {mount["name"] for box in boxes(name) for mount in box["volumeMounts"]}
            assert mounts == volumes, name
    assert set(re.findall(r"secret(?:Name|(?:Key)?Ref: \{name): ([\w-]+)", _manifests_text())) == secrets


def boxes(*pods: str) -> Iterator[dict[str, Any]]:
    """The containers of these pods, of all by default, those of the start included."""
    for name in pods or PODS:
        yield from (*PODS[name]["spec"].get("initContainers", []), *PODS[name]["spec"]["containers"])


def _manifests_text() -> str:
    return "".join(file.read_text() for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")))


def test_the_manifests_commands_and_settings_are_memds(secrets: dict[str, dict[str, str]]) -> None:
    """The ConfigMap with the secrets; Kubernetes' own variables for a Service called memd-… would be no settings."""
    (settings,) = (one["data"] for one in MANIFESTS if one["kind"] == "ConfigMap")
    check_settings(settings | secrets["memd.env"])
    for pod in PODS.values():
        assert pod["spec"]["enableServiceLinks"] is False
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    for box in boxes():
        assert box["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        check_commands(box.get("command", []))
        variables = {one["name"]: one.get("value", "") for one in box.get("env", [])}
        check_settings({name: value for name, value in variables.items() if name.startswith("MEMD_")})


def test_the_probes_ask_routes_by_a_name_that_is_served() -> None:
    """A probe names the pod's address by default, which memd refuses (421)."""
    (http,) = (box for box in boxes() if box["name"] == "http")
    served = HostCheck(None, config.HttpSettings())._names  # type: ignore[arg-type]  # no application is asked
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = http[probe]["httpGet"]
        assert is_route(asked["path"]), probe
        assert [header["value"].encode() in served for header in asked["httpHeaders"]] == [True]


def test_images_are_named_by_version_and_no_registry_is() -> None:
    """Only memd's own, which the reader builds, has no version."""
    images = {service["image"] for service in SERVICES.values()} | {box["image"] for box in boxes()}
    assert images == {"memd:latest", "postgres:17", "valkey/valkey:9"}
