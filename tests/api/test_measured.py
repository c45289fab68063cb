"""Our own measurements over HTTP and on their pages: telemetry beside the shares of the limit, device rates that go into a profile."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.domain.telemetry import Telemetry
from app.services.context import Context
from app.services.measured import profile_of_new_device
from app.services.storing import store_files
from app.store import telemetry as stored
from app.store.telemetry import to_telemetry_row
from tests.answers import API, ok, problem
from tests.applications import context_of, served_from

NOW = datetime(2026, 11, 29, tzinfo=UTC)
DATA = Path(__file__).resolve().parents[1] / "data" / "phaseline"


@dataclass(frozen=True)
class Site:
    """An application with our own files: a run that was watched, one that was slowed, a device, and a client's."""

    client: TestClient
    context: Context
    watched: int
    slowed: int
    device: int
    served: int


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served_from(tmp_path_factory.mktemp("measured")) as client:
        numbers: dict[str, list[int]] = {}
        for name in ("inprocess_sweep", "device_microbench", "endpoint_sweep"):
            answer = client.post(f"{API}/runs", content=(DATA / f"{name}.json").read_bytes(), params={"name": f"{name}.json"})
            numbers[name] = [run["id"] for run in ok(answer, 201)["runs"]]
        watched, slowed, _ = numbers["inprocess_sweep"]
        yield Site(client, context_of(client), watched, slowed, numbers["device_microbench"][0], numbers["endpoint_sweep"][0])


def page(site: Site, address: str) -> str:
    answer = site.client.get(address)
    assert answer.status_code == 200, answer.text
    return re.sub(r"\s+", " ", unescape(re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", answer.text, flags=re.DOTALL)))


def test_telemetry_of_a_run_is_kept_and_given_as_series_and_as_a_figure(site: Site) -> None:
    found = ok(site.client.get(f"{API}/runs/{site.slowed}/telemetry"))
    # every half second from 106 to 114 s; the power limit set in at 110 s, the ninth of 17 samples
    assert found["t_s"] == [0.5 * step for step in range(17)]
    assert found["channels"]["sm_clock_hz"][0] == 1.98e9
    assert found["throttled_share"] == pytest.approx(9 / 17)
    assert found["throttle_reasons"] == ["power limit"]
    assert found["energy_j"] == 3200.0
    figure = ok(site.client.get(f"{API}/runs/{site.slowed}/telemetry", params={"figure": "plotly"}))
    assert {"Core clock", "Power"} <= {trace["name"] for trace in figure["data"]}


@pytest.mark.parametrize("what", ["telemetry", "device"])
def test_a_run_without_them_says_so(site: Site, what: str) -> None:
    problem(site.client.get(f"{API}/runs/{site.served}/{what}"), 404, f"un {site.served}")
    problem(site.client.get(f"{API}/runs/999/{what}"), 404, "no run 999")


def test_the_page_sets_busy_beside_what_was_used_and_has_a_table_under_the_chart(site: Site) -> None:
    text = page(site, f"/runs/{site.watched}")
    assert "What the device did meanwhile" in text
    assert "The driver reports 95.0 % busy, which says that something ran" in text
    assert "Core clock 1,980" in text
    assert "Energy per output token" in text
    assert "What the device did meanwhile" not in page(site, f"/runs/{site.served}")


def test_busy_stands_beside_mfu_and_mbu_where_the_device_is_known(site: Site) -> None:
    answer = site.client.patch(f"{API}/runs/{site.watched}", json={"hardware": "h100-sxm5-80gb"})
    assert ok(answer)["efficiency"]["mfu"] > 0
    text = page(site, f"/runs/{site.watched}")
    assert re.search(r"busy, which says .*: [\d.]+ % of the arithmetic in prefill \(MFU\) and [\d.]+ % of the bandwidth", text)
    site.client.patch(f"{API}/runs/{site.watched}", json={"hardware": ""})


def test_the_rates_of_a_device_have_their_ceilings(site: Site) -> None:
    found = ok(site.client.get(f"{API}/runs/{site.device}/device"))
    (ceiling,) = found["ceilings"]
    assert (ceiling["dtype"], ceiling["best_flops_per_s"], ceiling["ridge_flops_per_byte"]) == ("fp32", 1e11, 4.0)
    text = page(site, f"/runs/{site.device}")
    assert "Acme CPU reaches 100 GFLOP/s in fp32 products and 25.0 GB/s while reading weights: above 4" in text
    assert "Make a profile of these rates" in text
    # no phase was timed, so that no figure stands there as not known; the measured roof is drawn
    assert "Time to first token" not in text
    assert 'data-chart="roofline"' in site.client.get(f"/runs/{site.device}").text
    assert "No model was run: this measures the device alone." in text


def post(site: Site, **body: str) -> Any:
    return site.client.post(f"{API}/runs/{site.device}/device", json=body)


def test_rates_become_a_profile_then_update_it_and_clone_a_shipped_one(site: Site) -> None:
    made = ok(post(site), 201)
    hardware = made["hardware"]
    assert (hardware["slug"], hardware["origin"], made["left_out"]) == ("acme-cpu", "user", [])
    # the best of all single measurements stands for a specification, medians are achieved
    assert (hardware["peak_flops_per_s"], hardware["bandwidth_bytes_per_s"]) == ({"fp32": 1.1e11}, 4.2e10)
    source = {"label": "measured", "source": f"run {site.device}, a microbenchmark of Acme CPU"}
    assert hardware["provenance"]["achieved_flops_per_s.fp32"] == source
    problem(post(site), 409, "already")
    assert "Update Acme CPU with these rates" in page(site, f"/runs/{site.device}")

    again = ok(post(site, update="acme-cpu"))
    assert again["hardware"]["achieved_flops_per_s"] == hardware["achieved_flops_per_s"]
    clone = ok(post(site, clone_of="cpu-xeon-platinum-8480-1-socket", name="Our Xeon"), 201)
    assert clone["hardware"]["slug"] == "our-xeon"
    assert clone["hardware"]["bandwidth_bytes_per_s"] != 4.2e10
    problem(post(site, update="h100-sxm5-80gb"), 409, "clone it")
    problem(post(site, clone_of="no-such-device"), 422, "No device is called")

    # the model that was measured on it is now assessed against its own ceilings
    site.client.patch(f"{API}/runs/{site.watched}", json={"hardware": "acme-cpu", "weight_dtype": "fp32"})
    run = ok(site.client.get(f"{API}/runs/{site.watched}"))
    assert run["hardware_slug"] == "acme-cpu"


def test_the_form_on_the_page_makes_a_profile_and_leads_to_it(site: Site) -> None:
    answer = site.client.post(f"/runs/{site.device}/device", data={"name": "Second"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/hardware/second")
    assert "measured" in page(site, "/hardware/second")


def test_a_missing_sample_comes_back_as_missing(site: Site) -> None:
    series = Telemetry(np.array([0.0, 1.0]), {"power_w": np.array([np.nan, 5.0])})
    row = to_telemetry_row(series)
    assert row == {"series": {"t_s": [0.0, 1.0], "channels": {"power_w": [None, 5.0]}}}
    assert to_telemetry_row(None) is None
    with site.context.database.read() as session:
        for missing in (0, 2**63, site.served):
            assert stored.load(session, missing) is None


def test_a_worker_that_measured_a_device_nobody_knew_gives_it_a_profile_at_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    sweep = json.loads((DATA / "inprocess_sweep.json").read_bytes())
    (device,) = json.loads((DATA / "device_microbench.json").read_bytes())["runs"]
    sweep["runs"] = [{**device, "hardware": "Acme A1", "device": {**device["device"], "name": "Acme A1"}}, *sweep["runs"]]
    with served_from(tmp_path_factory.mktemp("adopted")) as client:
        context = context_of(client)
        outcome = store_files(context, [("sweep.json", json.dumps(sweep).encode())], {}, NOW)
        assert ok(client.get(f"{API}/runs/{outcome.run_ids[1]}"))["hardware_slug"] is None
        made = profile_of_new_device(context, outcome.run_ids)
        assert made is not None
        assert (made.slug, made.peak_flops_per_s) == ("acme-a1", {"fp32": 1.1e11})
        assert ok(client.get(f"{API}/runs/{outcome.run_ids[1]}"))["hardware_slug"] == "acme-a1"
        # what is known already is not made again, and a client's run makes nothing
        assert profile_of_new_device(context, outcome.run_ids) is None
