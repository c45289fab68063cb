"""Devices over the API: read, add, clone, change, delete; what a change does to predictions and runs."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.shapes import HardwareList, HardwareShape
from tests.answers import API, ok, problem
from tests.result_files import served_file

HARDWARE = f"{API}/hardware"
OURS = {
    "name": "Our Accelerator 9",
    "vendor": "Ours",
    "memory_bytes": 9.6e10,
    "bandwidth_bytes_per_s": 2e12,
    "peak_flops_per_s": {"bf16": 5e14, "fp8": 1e15},
    "achieved_flops_per_s": {"bf16": 2.5e14},
    "achieved_bandwidth_bytes_per_s": 1.5e12,
    "link_name": "Wire",
    "link_bytes_per_s": 1e11,
    "tdp_w": 400,
    "released_year": 2026,
    "aliases": ["OA9"],
    "notes": "in the cellar",
}


def founding(client: TestClient, hardware: str, **changes: Any) -> dict[str, Any]:
    """The founding request on a device."""
    answer: dict[str, Any] = ok(client.get(f"{API}/predict", params={"hardware": hardware, **changes}))
    return answer


def bandwidth(value: float) -> dict[str, float]:
    """A bandwidth that is reached in full, as the textbook device's is."""
    return {"bandwidth_bytes_per_s": value, "achieved_bandwidth_bytes_per_s": value}


def test_the_list_has_every_shipped_device_with_the_source_of_its_figures(api: TestClient) -> None:
    answer = ok(api.get(HARDWARE))
    HardwareList.model_validate(answer)
    assert answer["next"] is None
    devices = {item["slug"]: item for item in answer["items"]}
    assert len(devices) > 100
    h100 = devices["h100-sxm5-80gb"]
    assert (h100["origin"], h100["vendor"]) == ("catalog", "NVIDIA")
    assert (h100["bandwidth_bytes_per_s"], h100["peak_flops_per_s"]["bf16"], h100["memory_bytes"]) == (3.35e12, 9.89e14, 8e10)
    assert h100["provenance"]["peak_flops_per_s.bf16"]["label"] == "verified-2-sources"
    assert all(item["provenance"] for item in answer["items"])


def test_one_device(api: TestClient) -> None:
    device = ok(api.get(f"{HARDWARE}/textbook-h100"))
    HardwareShape.model_validate(device)
    assert (device["peak_flops_per_s"]["bf16"], device["achieved_flops_per_s"]["bf16"]) == (9.89e14, 4.2e14)


def test_an_unknown_device_is_404(api: TestClient) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        body = {"json": {}} if method == "PATCH" else {}
        problem(api.request(method, f"{HARDWARE}/no-such-device", **body), 404, "There is no device “no-such-device”", "/hardware")


def test_a_device_of_ones_own_is_added_read_changed_and_deleted(api: TestClient) -> None:
    created = ok(api.post(HARDWARE, json=OURS), 201)
    HardwareShape.model_validate(created)
    slug = created["slug"]
    assert (slug, created["origin"]) == ("our-accelerator-9", "user")
    assert {key: created[key] for key in OURS} == OURS
    assert created["provenance"]["peak_flops_per_s.bf16"] == {"label": "user", "source": "entered by hand"}
    assert ok(api.get(f"{HARDWARE}/{slug}")) == created
    assert ok(api.get(HARDWARE))["items"][0] == created
    changed = ok(api.patch(f"{HARDWARE}/{slug}", json={"memory_bytes": None, "notes": "moved", "name": "Our Nine"}))
    assert changed == {**created, "memory_bytes": None, "notes": "moved", "name": "Our Nine", "provenance": changed["provenance"]}
    assert "memory_bytes" not in changed["provenance"]
    assert api.delete(f"{HARDWARE}/{slug}").status_code == 204
    problem(api.get(f"{HARDWARE}/{slug}"), 404)


def test_only_the_keys_given_change(api: TestClient) -> None:
    slug = ok(api.post(HARDWARE, json={**OURS, "name": "keys"}), 201)["slug"]
    before = ok(api.get(f"{HARDWARE}/{slug}"))
    assert ok(api.patch(f"{HARDWARE}/{slug}", json={})) == before
    after = ok(api.patch(f"{HARDWARE}/{slug}", json={"tdp_w": 500}))
    assert {key for key in before if before[key] != after[key]} == {"tdp_w"}


def test_a_name_that_is_taken_is_409(api: TestClient) -> None:
    ok(api.post(HARDWARE, json={**OURS, "name": "Taken"}), 201)
    problem(api.post(HARDWARE, json={**OURS, "name": "taken!"}), 409, "“taken”", "choose another name")
    problem(api.post(HARDWARE, json={**OURS, "name": "H100 SXM5 80GB"}), 409, "h100-sxm5-80gb")


def test_shipped_devices_are_read_only(api: TestClient) -> None:
    before = ok(api.get(f"{HARDWARE}/h100-sxm5-80gb"))
    problem(api.patch(f"{HARDWARE}/h100-sxm5-80gb", json={"name": "mine"}), 409, "belongs to the catalog", "clone it")
    problem(api.delete(f"{HARDWARE}/h100-sxm5-80gb"), 409, "belongs to the catalog")
    assert ok(api.get(f"{HARDWARE}/h100-sxm5-80gb")) == before


def test_a_clone_keeps_what_is_not_changed_and_its_sources(api: TestClient) -> None:
    base = ok(api.get(f"{HARDWARE}/h100-sxm5-80gb"))
    clone = ok(api.post(HARDWARE, json={"clone_of": "h100-sxm5-80gb", "name": "Rack 7", "peak_flops_per_s": {"bf16": 8e14}}), 201)
    assert (clone["slug"], clone["origin"], clone["aliases"]) == ("rack-7", "user", [])
    assert clone["bandwidth_bytes_per_s"] == base["bandwidth_bytes_per_s"]
    assert clone["peak_flops_per_s"] == {"bf16": 8e14}
    assert clone["provenance"]["bandwidth_bytes_per_s"] == base["provenance"]["bandwidth_bytes_per_s"]
    assert clone["provenance"]["peak_flops_per_s.bf16"]["label"] == "user"
    assert "peak_flops_per_s.fp8" not in clone["provenance"]


def test_a_clone_without_a_name_is_called_copy(api: TestClient) -> None:
    clone = ok(api.post(HARDWARE, json={"clone_of": "l4"}), 201)
    assert clone["name"] == f"{ok(api.get(f'{HARDWARE}/l4'))['name']} copy"
    same = {"slug", "name", "origin", "aliases"}
    base = ok(api.get(f"{HARDWARE}/l4"))
    assert {key: clone[key] for key in base if key not in same} == {key: base[key] for key in base if key not in same}


def test_a_clone_of_nothing_names_what_is_near(api: TestClient) -> None:
    body = problem(api.post(HARDWARE, json={"clone_of": "h100-sxm9-80gb", "name": "x"}), 422, "h100-sxm5-80gb")
    assert "h100-sxm5-80gb" in body["near"]


def test_a_change_is_no_clone(api: TestClient) -> None:
    slug = ok(api.post(HARDWARE, json={**OURS, "name": "no clone"}), 201)["slug"]
    assert problem(api.patch(f"{HARDWARE}/{slug}", json={"clone_of": "l4"}), 422, "clone_of")["field"] == "clone_of"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": None}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "™®"}, "name"),
        ({"bandwidth_bytes_per_s": None}, "bandwidth_bytes_per_s"),
        ({"peak_flops_per_s": {}}, "peak_flops_per_s"),
        ({"peak_flops_per_s": {"bf16": None}}, "peak_flops_per_s"),
        ({"peak_flops_per_s": {"fp9": 1e12}}, "peak_flops_per_s"),
        ({"achieved_flops_per_s": {"bf16": 5.1e14}}, "achieved_flops_per_s"),
        ({"achieved_bandwidth_bytes_per_s": 2.1e12}, "achieved_bandwidth_bytes_per_s"),
    ],
)
def test_a_device_that_cannot_be_priced_is_refused_naming_the_field(api: TestClient, changes: dict[str, Any], field: str) -> None:
    assert problem(api.post(HARDWARE, json={**OURS, **changes}), 422)["field"] == field
    problem(api.get(f"{HARDWARE}/our-accelerator-9"), 404)


@pytest.mark.parametrize("changes", [{"bandwidth_bytes_per_s": 0}, {"tdp_w": -1}, {"released_year": 1066}, {"memory_bytes": 1e22}])
def test_a_figure_out_of_range_is_refused(api: TestClient, changes: dict[str, Any]) -> None:
    problem(api.post(HARDWARE, json={**OURS, **changes}), 422, f"body.{next(iter(changes))}")


def test_a_clone_with_half_the_bandwidth_takes_twice_as_long_per_token(api: TestClient) -> None:
    """Row 13 of the founding ideas: decode follows bandwidth, prefill the arithmetic."""
    body = {"clone_of": "textbook-h100", "name": "half bandwidth", **bandwidth(3.35e12 / 2)}
    slug = ok(api.post(HARDWARE, json=body), 201)["slug"]
    base, half = founding(api, "textbook-h100"), founding(api, slug)
    assert half["itl_s"] == pytest.approx(2 * base["itl_s"])
    assert half["ttft_s"] == pytest.approx(base["ttft_s"])
    # Changing the clone changes what is predicted next: the bandwidth back, half the achieved arithmetic.
    ok(api.patch(f"{HARDWARE}/{slug}", json={**bandwidth(3.35e12), "achieved_flops_per_s": {"bf16": 2.1e14}}))
    slow = founding(api, slug)
    assert slow["itl_s"] == pytest.approx(base["itl_s"])
    assert slow["ttft_s"] == pytest.approx(2 * base["ttft_s"])


@pytest.mark.parametrize("spelling", ["our-fast-card", "Our Fast Card", "OFC 80", "ofc-80", "NVIDIA OFC 80"])
def test_a_device_of_ones_own_is_found_by_slug_name_and_alias_however_written(api: TestClient, spelling: str) -> None:
    if api.get(f"{HARDWARE}/our-fast-card").status_code == 404:
        body = {"clone_of": "textbook-h100", "name": "Our Fast Card", "aliases": ["OFC 80"], **bandwidth(6.7e12)}
        ok(api.post(HARDWARE, json=body), 201)
    # 16 GB at 6.7 TB/s.
    assert founding(api, spelling)["itl_s"] == pytest.approx(1.6e10 / 6.7e12)


def test_a_misspelt_device_of_ones_own_is_suggested(api: TestClient) -> None:
    ok(api.post(HARDWARE, json={"clone_of": "l4", "name": "Zanzibar accelerator"}), 201)
    body = problem(api.get(f"{API}/predict", params={"hardware": "zanzibar-acelerator"}), 422, "zanzibar-accelerator")
    assert body["near"][0] == "zanzibar-accelerator"


def test_an_alias_without_letters_matches_nothing_else(api: TestClient) -> None:
    ok(api.post(HARDWARE, json={"clone_of": "l4", "name": "odd alias", "aliases": ["***"]}), 201)
    problem(api.get(f"{API}/predict", params={"hardware": "???"}), 422, "No device is called")


def test_an_uploaded_run_is_matched_to_a_device_of_ones_own_by_alias(api: TestClient) -> None:
    ok(api.post(HARDWARE, json={"clone_of": "h100-sxm5-80gb", "name": "cluster west", "aliases": ["GPU-WEST"]}), 201)
    sent = api.post(f"{API}/runs", params={"hardware": "gpu-west", "weight_dtype": "bf16"}, content=served_file(1))
    run = ok(sent, 201)["runs"][0]
    assert (run["hardware"], run["hardware_slug"]) == ("gpu-west", "cluster-west")
    assert run["efficiency"]["mbu"] > 0


def test_deleting_a_device_leaves_its_runs_with_their_words(api: TestClient) -> None:
    ok(api.post(HARDWARE, json={"clone_of": "h100-sxm5-80gb", "name": "short lived"}), 201)
    run = ok(api.post(f"{API}/runs", params={"hardware": "short lived"}, content=served_file(2)), 201)["runs"][0]
    assert "efficiency" in run
    assert api.delete(f"{HARDWARE}/short-lived").status_code == 204
    after = ok(api.get(f"{API}/runs/{run['id']}"))
    assert after["hardware"] == "short lived"
    assert "efficiency" not in after
    assert any("“short lived” has no entry here" in warning for warning in after["warnings"])


def test_after_deleting_a_device_the_words_of_the_file_count_again(api: TestClient) -> None:
    """A device of one's own that took over a shipped one's name hands it back."""
    ok(api.post(HARDWARE, json={"clone_of": "h100-sxm5-80gb", "name": "stand-in", "aliases": ["NVIDIA H100 80GB HBM3"]}), 201)
    run = ok(api.post(f"{API}/runs", params={"hardware": "NVIDIA H100 80GB HBM3"}, content=served_file(3)), 201)["runs"][0]
    assert run["hardware_slug"] == "stand-in"
    assert api.delete(f"{HARDWARE}/stand-in").status_code == 204
    assert ok(api.get(f"{API}/runs/{run['id']}"))["efficiency"]["mbu"] == pytest.approx(run["efficiency"]["mbu"])
