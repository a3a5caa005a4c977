"""docker-compose.yml and build/Dockerfile: valid, hardened, in step with the embedded server."""

from __future__ import annotations

import importlib.resources
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import server_files
import server_health
import supervisor
import tomllib
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "build" / "Dockerfile").read_text()
RUN_BOOK = (ROOT / "docs" / "operations.md").read_text()
COMPOSE_FILES = [
    ROOT / "docker-compose.yml",
    ROOT / "monitoring" / "compose.admin.yml",
    ROOT / "monitoring" / "compose.webhook.yml",
]
SETTINGS = dict(
    line.split("=", 1) for line in (ROOT / ".env").read_text().splitlines() if line[0] != "#"
)
RELEASE = re.compile(r"\b\d\d\.\d\d-py3\b")
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")
TOOLS = ("prometheus", "alertmanager", "grafana", "jaeger")


def load(path: Path) -> dict[str, Any]:
    """Read a compose file with the variables of .env, or else their defaults, filled in."""
    text = VARIABLE.sub(lambda match: SETTINGS.get(match[1], match[3]), path.read_text())
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def services() -> dict[str, Any]:
    """Return the services."""
    found: dict[str, Any] = load(COMPOSE_FILES[0])["services"]
    return found


@pytest.fixture(params=["triton", "triton-cpu"])
def service(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen: dict[str, Any] = services()[request.param]
    return chosen


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen: dict[str, Any] = services()[request.param]
    return chosen


@pytest.mark.parametrize("path", COMPOSE_FILES, ids=lambda path: path.name)
def test_file_follows_the_compose_schema(path: Path) -> None:
    vendor = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((vendor / "compose-spec.json").read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)
    errors = [f"{e.json_path}: {e.message}" for e in validator(schema).iter_errors(load(path))]
    assert not errors


@pytest.mark.parametrize("path", COMPOSE_FILES, ids=lambda path: path.name)
def test_every_variable_has_a_default_or_is_set(path: Path) -> None:
    for name, operator, default in VARIABLE.findall(path.read_text()):
        assert default
        assert name in SETTINGS if operator == "?" else operator == "-"


def test_services_differ_in_gpus_and_profile_only() -> None:
    both = services()
    gpu, cpu = both["triton"], both["triton-cpu"]
    (device,) = gpu.pop("deploy")["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert cpu.pop("profiles") == ["cpu"]
    assert gpu.pop("profiles") == [SETTINGS["COMPOSE_PROFILES"]] == ["gpu"]
    assert gpu == cpu


def test_flags_are_those_of_the_embedded_server(service: dict[str, Any]) -> None:
    assert set(server_files.SHARED_FLAGS) <= set(service["command"])


def test_thread_pool_has_room_for_every_stream() -> None:
    config = (ROOT / "model_repository" / "chattts" / "config.pbtxt").read_text()
    match = re.search(r'key: "max_streams" value: \{ string_value: "(\d+)"', config)
    assert match is not None
    assert 2 * int(match[1]) < server_files.THREAD_POOL_SIZE


def test_grace_period_is_longer_than_the_drain(service: dict[str, Any]) -> None:
    seconds = re.fullmatch(r"(\d+)s", service["stop_grace_period"])
    assert seconds is not None
    assert int(seconds[1]) > server_files.EXIT_TIMEOUT_S + supervisor.DRAIN_MARGIN_S


def test_container_is_hardened(service: dict[str, Any]) -> None:
    assert service["user"] == "1000:1000"
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "--allow-client-shm=false" in service["command"]
    # models are loaded and unloaded only by who can read a file in the container
    assert service["command"][0].startswith("--control-token-file=")
    assert {volume["read_only"] for volume in service["volumes"]} == {True}
    assert service["mem_limit"]
    # two versions of three Python models, the one with four instances, and as much again
    assert service["pids_limit"] > 2 * 2 * 6 * server_files.THREAD_POOL_SIZE
    assert service["cpus"] == 0  # all
    assert "USER 1000:1000" in DOCKERFILE


def test_only_what_is_written_can_be_written(service: dict[str, Any]) -> None:
    assert service["read_only"]
    (mounted,) = service["tmpfs"]
    path, _, options = mounted.partition(":")
    assert "exec" in options.split(
        ","
    )  # Docker's default is noexec, and compiled kernels are loaded
    assert re.search(r"\bsize=\d+[kmg]$", options)  # as the kernel reads it, not Docker
    written = [service["command"][0].partition("=")[2]]
    written += re.findall(r"\b\w+_CACHE_(?:DIR|PATH)=(\S+)", DOCKERFILE)
    assert len(written) == 3
    assert all(name.startswith(f"{path}/") for name in written)


def test_ports_are_published_on_loopback(service: dict[str, Any]) -> None:
    assert service["ports"] == [f"127.0.0.1:{port}:{port}" for port in (8000, 8001, 8002)]


def test_health_is_what_the_models_answer(service: dict[str, Any]) -> None:
    kind, curl, *options, data, body, url = service["healthcheck"]["test"]
    assert (kind, curl) == ("CMD", "curl")
    assert "--fail" in options
    assert data == "--data"
    assert json.loads(body) == json.loads(server_health.HEALTH_BODY)
    assert url == f"http://127.0.0.1:8000{server_health.HEALTH_PATH}"


def test_probe_in_the_run_book_is_that_health_check(service: dict[str, Any]) -> None:
    section = RUN_BOOK.split("\n## Probes\n")[1].split("\n## ")[0]
    (snippet,) = re.findall(r"```yaml\n(.+?)```", section, re.DOTALL)
    pod = yaml.safe_load(snippet)
    check = service["healthcheck"]
    for probe in ("startupProbe", "readinessProbe"):
        assert pod[probe]["exec"]["command"] == check["test"][1:]
        assert pod[probe]["timeoutSeconds"] == int(check["timeout"].removesuffix("s"))
    grace = pod["terminationGracePeriodSeconds"]
    assert grace == int(service["stop_grace_period"].removesuffix("s"))


def test_image_s_tag_is_a_setting() -> None:
    names = re.findall(r"^  image: (.+)$", COMPOSE_FILES[0].read_text(), re.MULTILINE)
    assert names == ["${CHATTTS_IMAGE:-chattts-triton:latest}"]


def test_logs_of_a_night_are_kept(service: dict[str, Any]) -> None:
    options = service["logging"]["options"]
    kept = int(options["max-size"].removesuffix("m")) * 2**20 * int(options["max-file"])
    # 14 requests per second; a line of 514 bytes, 650 as Docker writes it
    assert kept / (14 * 650) > 12 * 3600


def test_shared_memory_and_restart_are_set(service: dict[str, Any]) -> None:
    assert service["shm_size"] == "1gb"
    assert service["restart"] == "unless-stopped"


def test_tools_are_pinned_and_hardened(tool: dict[str, Any]) -> None:
    assert re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+", tool["image"])
    assert tool["read_only"]
    assert tool["cap_drop"] == ["ALL"]
    assert tool["security_opt"] == ["no-new-privileges:true"]
    assert tool["mem_limit"]
    assert tool["cpus"] == 1
    assert tool["pids_limit"] == 512
    assert tool["healthcheck"]["test"][:2] == ["CMD", "wget"]
    assert tool["stop_grace_period"]
    assert all(port.startswith("127.0.0.1:") for port in tool["ports"])


def test_tools_stay_closed_when_the_server_is_opened() -> None:
    text = VARIABLE.sub(
        lambda match: "0.0.0.0" if match[1] == "BIND_ADDRESS" else SETTINGS.get(match[1], match[3]),
        COMPOSE_FILES[0].read_text(),
    )
    opened = yaml.safe_load(text)["services"]
    for name, service in opened.items():
        address = "127.0.0.1:" if name in TOOLS else "0.0.0.0:"
        assert all(port.startswith(address) for port in service["ports"])


def test_what_the_tools_mount_exists_and_cannot_be_written(tool: dict[str, Any]) -> None:
    for volume in tool.get("volumes", ()):
        source, _, *options = volume.split(":")
        if source in load(COMPOSE_FILES[0])["volumes"]:
            continue
        # a folder: a file mounted by itself stays the old one when an editor replaces it
        assert (ROOT / source).is_dir()
        assert options == ["ro"]


def test_prometheus_looks_where_the_server_is(service: dict[str, Any]) -> None:
    (alias,) = service["networks"]["default"]["aliases"]
    config = yaml.safe_load((ROOT / "monitoring" / "prometheus.yml").read_text())
    assert config["scrape_configs"][0]["static_configs"] == [{"targets": [f"{alias}:8002"]}]


def test_grafana_finds_its_dashboards_and_prometheus() -> None:
    grafana = services()["grafana"]
    mounted = dict(volume.split(":")[:2] for volume in grafana["volumes"])
    provisioning = ROOT / "monitoring" / "grafana" / "provisioning"
    provider = yaml.safe_load((provisioning / "dashboards" / "chattts.yml").read_text())
    folder = provider["providers"][0]["options"]["path"]
    assert folder == mounted["./monitoring/grafana/dashboards"]
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert str(home.parent) == folder
    assert (ROOT / "monitoring" / "grafana" / "dashboards" / home.name).exists()
    source = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    assert services()["prometheus"]["ports"][0].endswith(":9090")


def test_grafana_has_viewers_and_an_administrator_only_with_a_password_from_a_file() -> None:
    settings = services()["grafana"]["environment"]
    assert settings["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert settings["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    added = load(COMPOSE_FILES[1])
    changed = added["services"]["grafana"]["environment"]
    (secret,) = added["secrets"]
    assert changed["GF_SECURITY_ADMIN_PASSWORD__FILE"] == f"/run/secrets/{secret}"
    assert not [name for name in settings | changed if name.endswith("PASSWORD")]


def test_alerts_go_to_the_alertmanager_which_has_its_token_from_a_file() -> None:
    monitoring = ROOT / "monitoring"
    prometheus = yaml.safe_load((monitoring / "prometheus.yml").read_text())
    (manager,) = prometheus["alerting"]["alertmanagers"]
    assert manager["static_configs"] == [{"targets": ["alertmanager:9093"]}]
    service = services()["alertmanager"]
    assert service["profiles"] == ["alerts"]
    assert service["ports"][0].endswith(":9093")
    config = yaml.safe_load((monitoring / "alertmanager.yml").read_text())
    receivers = {receiver.pop("name"): receiver for receiver in config["receivers"]}
    assert receivers.pop(config["route"]["receiver"]) == {}
    (webhook,) = receivers["webhook"]["webhook_configs"]
    added = load(COMPOSE_FILES[2])
    (secret,) = added["services"]["alertmanager"]["secrets"]
    assert list(added["secrets"]) == [secret]
    authorization = webhook["http_config"]["authorization"]
    assert authorization == {"credentials_file": f"/run/secrets/{secret}"}


def test_traces_go_to_the_collector_when_they_are_switched_on(service: dict[str, Any]) -> None:
    flags = [word for word in service["command"] if word.startswith("--trace-config=")]
    assert "--trace-config=level=OFF" in flags
    assert "--trace-config=rate=0" in flags
    assert "--trace-config=opentelemetry,url=http://jaeger:4318/v1/traces" in flags
    assert services()["jaeger"]["profiles"] == ["otel"]


def test_release_is_written_in_one_place() -> None:
    assert len(RELEASE.findall(DOCKERFILE)) == 1
    others = [ROOT / "docker-compose.yml", ROOT / "Makefile", *ROOT.glob("*.md")]
    others += (ROOT / "docs").rglob("*.md")
    assert not [path for path in others if path.exists() and RELEASE.search(path.read_text())]


def test_release_has_the_fixes_that_we_rely_on() -> None:
    (release,) = RELEASE.findall(DOCKERFILE)
    assert release >= "26.04-py3"


def test_dockerfile_has_no_lint() -> None:
    command = [str(Path(sys.executable).with_name("hadolint")), str(ROOT / "build" / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_dockerfile_copies_files_that_exist_and_are_sent() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE)
    sources = [source for line in copied for source in line.split()]
    sent = (ROOT / ".dockerignore").read_text().splitlines()
    assert sources
    for source in sources:
        assert (ROOT / source).is_file()
        assert f"!{source}" in sent


def test_supervisor_has_every_module_that_it_imports() -> None:
    copies = "".join(re.findall(r"^COPY .+$", DOCKERFILE, re.MULTILINE))
    copied = set(re.findall(r"embedded/(\w+)\.py", copies))
    waiting, needed = ["supervise"], set()
    while waiting:
        needed.add(module := waiting.pop())
        source = (ROOT / "embedded" / f"{module}.py").read_text()
        imported = set(re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE))
        waiting += [name for name in imported - needed if (ROOT / f"embedded/{name}.py").exists()]
    assert copied == needed
    command = re.search(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    assert command is not None
    assert json.loads(command[1])[-2:] == ["python3", "/opt/chattts/supervise.py"]


@pytest.mark.parametrize("extra", ["server", "torch"])
def test_installed_packages_are_those_of_the_extra(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "build" / f"requirements-{extra}.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    extras = project["optional-dependencies"]
    needed = extras[extra] + (extras["text"] if "chattts-client[text]" in extras[extra] else [])
    assert sorted(pins) == sorted(set(needed) - {"chattts-client[text]"})
