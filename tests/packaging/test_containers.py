"""The files in packaging/ agree with the program: what can be checked without Docker, Grafana and Kubernetes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from lmwire_http.cli.parser import make_parser
from lmwire_http.server.server import FINAL_ERRORS_S
from lmwire_http.settings import Settings
from lmwire_http.telemetry.traces import FLUSH_S
from support.http.http_server import MOCK, served_process, wait_until
from support.http.raw_http import CHAT, asked, chat_body

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
DOCKERFILE = (PACKAGING / "Dockerfile").read_text()
COMPOSE: Any = yaml.safe_load((PACKAGING / "compose.yaml").read_text())


def test_every_source_that_the_image_copies_exists() -> None:
    copies = [line.split()[1:-1] for line in DOCKERFILE.splitlines() if re.match(r"COPY (?!--from)", line)]
    assert copies
    for source in [source for sources in copies for source in sources]:
        assert (ROOT / source).exists(), source


def test_the_images_do_not_run_as_root_and_have_a_health_check() -> None:
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]
    by_name = {stage.split()[3 if stage.split()[1] != "AS" else 2]: stage for stage in stages}
    for target in ("cpu", "cuda"):
        assert by_name[target].rstrip().endswith("USER lmwire")
        assert f"[{target},vision,http,tracing]" in by_name[target]
    assert "/health" in re.findall(r"HEALTHCHECK.*\n.*", by_name["base"])[0]


def test_each_variable_of_the_image_sets_an_option() -> None:
    parser = make_parser()
    known = {parser.variable_of(action) for action in parser.settable()}
    used = set(re.findall(r"LMWIRE_SERVE_\w+", DOCKERFILE))
    assert used and used <= known


def test_each_command_line_is_one_that_the_server_accepts() -> None:
    (deployment, *_) = manifests()
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    for arguments in (COMPOSE["services"]["lmwire"]["command"], container["args"]):
        assert make_parser().parse_args(arguments).download


def test_compose_refers_only_to_what_it_defines() -> None:
    for name, service in COMPOSE["services"].items():
        for config in service.get("configs", []):
            assert config["source"] in COMPOSE["configs"], name
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert (PACKAGING / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], volume
    build = COMPOSE["services"]["lmwire"]["build"]
    assert (PACKAGING / build["context"] / build["dockerfile"]).is_file()
    for content in COMPOSE["configs"].values():
        assert yaml.safe_load(content["content"])


def test_the_service_of_kubernetes_finds_the_pods() -> None:
    deployment, service, budget = manifests()
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == labels
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert 0 < budget["spec"]["minAvailable"] < deployment["spec"]["replicas"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert service["spec"]["ports"][0]["targetPort"] in {port["name"] for port in container["ports"]}
    # Kubernetes sets LMWIRE_SERVE_PORT for a service of this name.
    assert service["metadata"]["name"] != "lmwire-serve"


def test_a_pod_has_the_time_to_drain() -> None:
    (deployment, *_) = manifests()
    pod = deployment["spec"]["template"]["spec"]
    *_, pause_s = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    needed_s = int(pause_s) + Settings().drain_s + FINAL_ERRORS_S + FLUSH_S
    assert needed_s < pod["terminationGracePeriodSeconds"]


def manifests() -> Iterator[Any]:
    """Yield the manifests for Kubernetes."""
    yield from yaml.safe_load_all((PACKAGING / "kubernetes" / "lmwire.yaml").read_text())


@pytest.fixture(scope="module")
def samples() -> dict[str, set[str]]:
    """The labels of each sample of /metrics of a server that has answered a stream."""
    with served_process("mock", "--worker", MOCK) as server:
        assert asked(server.url, "POST", CHAT, chat_body("three words here", stream=True)).status == 200
        texts: list[str] = []

        def read() -> bool:
            texts.append(asked(server.url, "GET", "/metrics").body.decode())
            return "\nlmwire_worker_uptime_seconds{" in texts[-1]

        wait_until(read, "the worker has not answered the server in time for its metrics")
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(texts[-1]):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.slow
def test_each_metric_and_label_of_the_dashboard_is_one_of_the_server(samples: dict[str, set[str]]) -> None:
    dashboard = json.loads((PACKAGING / "grafana" / "lmwire.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            metrics = re.findall(r"lmwire_\w+", target["expr"])
            assert metrics
            for metric in metrics:
                assert metric in samples, (panel["title"], metric)
            labels = {label for group in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in group.split(", ")}
            assert labels <= set.union(*(samples[metric] for metric in metrics)), panel["title"]
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels, panel["title"]
