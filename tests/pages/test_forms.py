"""Every form by plain posts, as a browser without scripts sends them: what was typed in is stored, kept on an error, and shown."""

import json
from collections.abc import Iterator
from html import unescape
from re import search
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.applications import served_from
from tests.pages import markup
from tests.pages.conftest import Site, words_of
from tests.result_files import data_of, served, served_file

CONFIG = {
    "model_type": "llama",
    "hidden_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "intermediate_size": 2816,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An application for all forms; each test stores things of its own and looks at nothing else."""
    with served_from(tmp_path_factory.mktemp("shop")) as client:
        yield client


def post(client: TestClient, address: str, **fields: str) -> Any:
    return client.post(address, data=fields, follow_redirects=False)


def add_run(client: TestClient, **changes: Any) -> int:
    answer = client.post("/runs/new", files={"file": ("report.json", data_of(served(**changes)))}, follow_redirects=False)
    assert answer.status_code == 303, words_of(answer.text)
    return int(answer.headers["location"].rsplit("/", 1)[1])


def form_of(client: TestClient, address: str, action: str | None = None) -> dict[str, str]:
    return markup.read(client.get(address).text).form(action or address)


def test_a_run_gets_its_model_and_device_and_with_them_its_efficiency(shop: TestClient) -> None:
    """Llama-3.1-8B on an H100: 15.0 GB of weights a step need 4.48 ms, 10 ms were measured: between 40 and 50 %."""
    number = add_run(shop, model_id="acme/in-house-8b", tokenizer_id="efficiency")
    before = words_of(shop.get(f"/runs/{number}").text)
    assert "50.0 ms to the first token, then 10.0 ms for each further one" in before
    assert "No prediction: the model “acme/in-house-8b” has no entry here; choose one under Edit." in before
    fields = form_of(shop, f"/runs/{number}/edit")
    fields |= {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "tp": "1", "weight_dtype": "bf16", "tags": "nightly, edited"}
    answer = post(shop, f"/runs/{number}/edit", **fields)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{number}")
    after = words_of(shop.get(f"/runs/{number}").text)
    assert "Decode runs at 4" in after
    assert "of the bandwidth floor" in after
    assert "edited nightly" in after
    run = shop.get(f"/api/v1/runs/{number}").json()
    assert 0.40 < run["efficiency"]["mbu"] < 0.50
    assert run["tags"] == ["edited", "nightly"]


def test_an_edit_form_sent_back_untouched_changes_nothing(shop: TestClient) -> None:
    number = add_run(shop, model_id="meta-llama/Llama-3.1-8B-Instruct", tokenizer_id="untouched")
    post(
        shop,
        f"/runs/{number}/edit",
        hardware="H100 SXM",
        label="  a <b>label</b> ",
        tags="one,two, one",
        notes="first line\n\n  second <i>line</i>\n",
    )
    before = shop.get(f"/api/v1/runs/{number}").json()
    assert (before["label"], before["tags"]) == ("a <b>label</b>", ["one", "two"])
    assert before["model"] == "meta-llama/Llama-3.1-8B-Instruct", "the file's own word stays"
    assert before["hardware_slug"] == "h100-sxm5-80gb"
    post(shop, f"/runs/{number}/edit", **form_of(shop, f"/runs/{number}/edit"))
    assert shop.get(f"/api/v1/runs/{number}").json() == before


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("tp", "0", "“tp” must be a whole number from 1 to 4096."),
        ("devices", "many", "“devices” must be a whole number from 1 to 4096."),
        ("weight_dtype", "fp99", "fp99"),
        ("kv_dtype", "q4_k_m", "kv_dtype"),
        ("tags", ",".join(f"t{number}" for number in range(51)), "51 tags are too many: 50 at most."),
    ],
)
def test_a_wrong_word_keeps_the_form_as_it_was_typed(shop: TestClient, field: str, value: str, words: str) -> None:
    number = add_run(shop, tokenizer_id=f"wrong-{field}")
    typed = form_of(shop, f"/runs/{number}/edit") | {field: value, "notes": "typed a minute ago"}
    answer = post(shop, f"/runs/{number}/edit", **typed)
    assert answer.status_code == 422
    assert markup.faults(answer.text) == []
    page = markup.read(answer.text)
    assert page.form(f"/runs/{number}/edit") == typed
    wrong = [element.attributes["name"] for element in page.elements if element.attributes.get("aria-invalid") == "true"]
    assert wrong == [field]
    assert words in words_of(answer.text)
    assert shop.get(f"/api/v1/runs/{number}").json()["notes"] == ""


def test_a_deleted_run_is_gone(shop: TestClient) -> None:
    number = add_run(shop, tokenizer_id="deleted")
    answer = post(shop, f"/runs/{number}/delete")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs")
    assert shop.get(f"/runs/{number}").status_code == 404
    assert shop.get(f"/api/v1/runs/{number}/original").status_code == 404


def test_an_upload_goes_to_its_run_with_what_was_said_beside_it(shop: TestClient) -> None:
    fields = {
        "model": "llama-3-1-8b",
        "hardware": "h100-sxm5-80gb",
        "tp": "2",
        "devices": "2",
        "weight_dtype": "fp8",
        "label": "with words",
    }
    answer = shop.post(
        "/runs/new", files={"file": ("r.json", served_file(1))}, data={**fields, "tags": "a,b", "project": "tests"}, follow_redirects=False
    )
    assert answer.status_code == 303
    run = shop.get(f"/api/v1{answer.headers['location']}").json()
    assert {key: run[key] for key in ("label", "tp", "devices", "weight_dtype", "model_slug", "hardware_slug", "project", "tags")} == {
        "label": "with words",
        "tp": 2,
        "devices": 2,
        "weight_dtype": "fp8",
        "model_slug": "llama-3-1-8b",
        "hardware_slug": "h100-sxm5-80gb",
        "project": "tests",
        "tags": ["a", "b"],
    }


def test_a_pasted_result_is_a_file(shop: TestClient) -> None:
    answer = shop.post("/runs/new", files={"pasted": (None, served_file(2).decode())}, follow_redirects=False)
    assert answer.status_code == 303
    assert shop.get(f"/api/v1{answer.headers['location']}").json()["file"] == "pasted"


def test_several_files_say_what_became_of_each(shop: TestClient) -> None:
    files = [
        ("file", ("good.json", served_file(3))),
        ("file", ("notes.txt", b"no result at all")),
        ("file", ("also-good.json", served_file(4))),
    ]
    answer = shop.post("/runs/new", files=files, follow_redirects=False)
    assert answer.status_code == 200
    assert markup.faults(answer.text) == []
    shown = words_of(answer.text)
    assert "good.json, read as vllm_bench_serve." in shown
    assert "notes.txt was refused." in shown
    assert "What was tried" in shown
    for format in ("vllm_bench_serve", "sglang_bench_serving", "llama_bench", "vllm_bench_serve_log"):
        assert f" {format} " in shown
    assert "Compare them" in shown


@pytest.mark.parametrize(
    ("files", "status", "words"),
    [
        ({"file": ("empty.json", b"")}, 422, "empty.json was refused."),
        ({"file": ("page.html", b"<!doctype html><p>Sign in")}, 422, "page.html was refused."),
        ({"file": ("runs.zip", b"PK\x03\x04" + bytes(30))}, 413, "is not unpacked yet"),
        ({"nothing": ("x", b"x")}, 422, "There is no file in this form: choose one, drop one, or paste its text."),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_on_the_page(shop: TestClient, files: dict[str, Any], status: int, words: str) -> None:
    before = len(shop.get("/api/v1/runs").json()["items"])
    answer = shop.post("/runs/new", files=files, follow_redirects=False)
    assert answer.status_code == status
    assert markup.faults(answer.text) == []
    assert words in words_of(answer.text)
    assert len(shop.get("/api/v1/runs").json()["items"]) == before


def test_a_wrong_word_beside_an_upload_stores_nothing_and_keeps_what_was_typed(shop: TestClient) -> None:
    typed = {"label": "typed a minute ago", "tp": "none", "pasted": served_file(5).decode()}
    answer = shop.post("/runs/new", files={"file": ("", b"")}, data=typed, follow_redirects=False)
    assert answer.status_code == 422
    assert "“tp” must be a whole number from 1 to 4096." in words_of(answer.text)
    page = markup.read(answer.text)
    assert typed.items() <= page.form("/runs/new").items()
    assert [element.attributes["name"] for element in page.elements if element.attributes.get("aria-invalid") == "true"] == ["tp"]


def test_a_refused_paste_is_still_there_to_be_mended(shop: TestClient) -> None:
    answer = shop.post("/runs/new", files={"pasted": (None, '{"half": ')}, data={"label": "kept"}, follow_redirects=False)
    assert answer.status_code == 422
    assert "pasted was refused." in words_of(answer.text)
    form = markup.read(answer.text).form("/runs/new")
    assert (form["pasted"], form["label"]) == ('{"half": ', "kept")


def test_a_file_over_the_limit_is_refused_on_the_page(tmp_path: Any) -> None:
    with served_from(tmp_path, max_upload_bytes=100) as client:
        answer = client.post("/runs/new", files={"file": ("big.json", served_file(6))}, follow_redirects=False)
        assert answer.status_code == 413
        assert markup.faults(answer.text) == []
        assert "larger than 100 bytes" in words_of(answer.text)
        assert client.get("/api/v1/runs").json()["items"] == []


def test_the_sample_runs_come_once(client: TestClient) -> None:
    first, again = post(client, "/runs/samples"), post(client, "/runs/samples")
    assert first.status_code == again.status_code == 303
    assert first.headers["location"] == again.headers["location"]
    assert len(client.get("/api/v1/runs").json()["items"]) == 6
    assert "Prefill got 2.6× slower, decode 31.9 % faster" in words_of(client.get(first.headers["location"]).text)


DEVICE = {"name": "Lab Card", "vendor": "Lab", "memory_gb": "24", "bandwidth_gb_per_s": "1,000", "peak_bf16": "100", "link_gb_per_s": "32"}


def test_a_device_of_ones_own_from_its_first_figure_to_its_end(shop: TestClient) -> None:
    answer = post(shop, "/hardware/new", **form_of(shop, "/hardware/new") | DEVICE)
    assert (answer.status_code, answer.headers["location"]) == (303, "/hardware/lab-card")
    shown = words_of(shop.get("/hardware/lab-card").text)
    assert "Lab Card: above 100 FLOP/byte arithmetic sets the pace" in shown
    assert "Memory bandwidth 1.00 TB/s user entered by hand" in shown
    before = shop.get("/api/v1/hardware/lab-card").json()
    assert (before["bandwidth_bytes_per_s"], before["peak_flops_per_s"]) == (1e12, {"bf16": 1e14})
    untouched = form_of(shop, "/hardware/lab-card/edit")
    assert post(shop, "/hardware/lab-card/edit", **untouched).status_code == 303
    assert shop.get("/api/v1/hardware/lab-card").json() == before
    # Half the bandwidth doubles the step: 16 GB / 0.5 TB/s = 32 ms
    post(shop, "/hardware/lab-card/edit", **untouched | {"bandwidth_gb_per_s": "500"})
    assert "16.0 GB ÷ 500 GB/s" in words_of(shop.get("/?hardware=lab-card").text)
    assert "32.0 ms" in words_of(shop.get("/?hardware=lab-card").text)
    assert post(shop, "/hardware/lab-card/delete").headers["location"] == "/hardware"
    assert shop.get("/hardware/lab-card").status_code == 404


def test_a_copy_of_a_shipped_device_has_its_figures_and_their_sources(shop: TestClient) -> None:
    address = "/hardware/new?clone_of=h100-sxm5-80gb"
    fields = form_of(shop, address, "/hardware/new")
    assert fields["name"] == "NVIDIA H100 SXM5 80GB copy"
    answer = post(shop, "/hardware/new", **fields)
    assert answer.headers["location"] == "/hardware/nvidia-h100-sxm5-80gb-copy"
    mine, shipped = (shop.get(f"/api/v1/hardware/{slug}").json() for slug in ("nvidia-h100-sxm5-80gb-copy", "h100-sxm5-80gb"))
    apart = {key for key in shipped if mine[key] != shipped[key]}
    assert apart == {"slug", "name", "aliases", "origin"}
    assert mine["origin"] == "user"


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"name": ""}, "name", "A device needs a name."),
        ({"name": "***"}, "name", "The name needs at least one letter or digit."),
        ({"bandwidth_gb_per_s": ""}, "bandwidth_gb_per_s", "A device needs its memory bandwidth: decode is priced from it."),
        ({"bandwidth_gb_per_s": "fast"}, "bandwidth_gb_per_s", "bandwidth gb per s must be a number, such as 3350 or 989.5."),
        ({"bandwidth_gb_per_s": "nan"}, "bandwidth_gb_per_s", "bandwidth_bytes_per_s"),
        ({"memory_gb": "-1"}, "memory_gb", "memory_bytes"),
        ({"peak_bf16": ""}, "peak_bf16", "A device needs the specified rate of at least one number format, such as bf16."),
        ({"achieved_bf16": "101"}, "achieved_bf16", "The achieved bf16 rate is above the specified peak, which nothing can beat."),
    ],
)
def test_a_device_that_cannot_be_is_refused_beside_its_field(shop: TestClient, changes: dict[str, str], field: str, words: str) -> None:
    typed = {**DEVICE, "name": "Refused Card", **changes}
    answer = post(shop, "/hardware/new", **typed)
    assert answer.status_code == 422
    assert markup.faults(answer.text) == []
    page = markup.read(answer.text)
    assert [element.attributes["name"] for element in page.elements if element.attributes.get("aria-invalid") == "true"] == [field]
    assert words in words_of(answer.text)
    assert typed.items() <= page.form("/hardware/new").items(), "what was typed is still there"
    assert shop.get("/hardware/refused-card").status_code == 404


def test_a_name_that_is_taken_is_said(shop: TestClient) -> None:
    assert post(shop, "/hardware/new", **DEVICE | {"name": "Taken Card"}).status_code == 303
    again = post(shop, "/hardware/new", **DEVICE | {"name": "taken card"})
    assert again.status_code == 422
    assert "taken-card" in words_of(again.text)


def test_a_model_of_ones_own_from_its_config_to_its_end(shop: TestClient) -> None:
    """Parameters by hand: 2 tables of 32000 x 1024, per layer 1024 x (2 x 1024 + 2 x 256) attention, 3 x 1024 x 2816 MLP, two norms."""
    parameters = 2 * 32000 * 1024 + 8 * (1024 * (2 * 1024 + 2 * 256) + 3 * 1024 * 2816 + 2 * 1024) + 1024
    answer = post(shop, "/models/new", name="Lab Model", aliases="lab/one, lab/two", config=json.dumps(CONFIG))
    assert (answer.status_code, answer.headers["location"]) == (303, "/models/lab-model")
    shown = words_of(shop.get("/models/lab-model").text)
    assert f"Parameters from the shapes {parameters:,}" in shown
    assert "4 KV heads of" in shown
    assert "Also written lab/one, lab/two." in shown
    before = shop.get("/api/v1/models/lab-model").json()
    assert post(shop, "/models/lab-model/edit", **form_of(shop, "/models/lab-model/edit")).status_code == 303
    assert shop.get("/api/v1/models/lab-model").json() == before
    post(shop, "/models/lab-model/edit", name="Lab Model", aliases="", config=json.dumps({**CONFIG, "num_hidden_layers": 4}))
    assert shop.get("/api/v1/models/lab-model").json()["architecture"]["layers"] == 4
    assert post(shop, "/models/lab-model/delete").headers["location"] == "/models"
    assert shop.get("/models/lab-model").status_code == 404


def test_a_copy_of_a_shipped_model_keeps_its_shapes(shop: TestClient) -> None:
    fields = form_of(shop, "/models/new?clone_of=llama-3-1-8b", "/models/new")
    answer = post(shop, "/models/new", **fields)
    assert answer.status_code == 303
    assert "8.03 billion parameters" in words_of(shop.get(answer.headers["location"]).text)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('{"model_type": "mixtral", "num_local_experts": 8}', "hidden_size"),
        (json.dumps({**CONFIG, "num_local_experts": 8}), "num_local_experts"),
        (json.dumps({**CONFIG, "kv_lora_rank": 512}), "kv_lora_rank"),
        ("{not json", "This is not JSON: "),
        ("[]", "A config.json is one object, in braces."),
        ("[" * 100_000, "nested too deep"),
        (json.dumps({**CONFIG, "hidden_size": "wide"}), "hidden_size"),
        ("", "A model needs its config.json"),
    ],
)
def test_a_config_that_is_not_priced_is_refused_by_its_field(shop: TestClient, config: str, words: str) -> None:
    answer = post(shop, "/models/new", name="Refused Model", config=config)
    assert answer.status_code == 422
    assert markup.faults(answer.text) == []
    page = markup.read(answer.text)
    assert [element.attributes["name"] for element in page.elements if element.attributes.get("aria-invalid") == "true"] == ["config"]
    assert words in words_of(answer.text)
    assert page.form("/models/new")["config"] == config
    assert shop.get("/models/refused-model").status_code == 404


def test_a_shipped_profile_has_no_way_to_be_changed(shop: TestClient) -> None:
    for address in ("/hardware/h100-sxm5-80gb", "/models/llama-3-1-8b"):
        page = markup.read(shop.get(address).text)
        assert f"{address}/edit" not in page.links()
        posts = [form.attributes["action"] for form in page.all("form") if form.attributes["method"] == "post"]
        # A calibration stands beside a profile and leaves it as it is.
        assert [action for action in posts if not str(action).endswith("/calibrate")] == []
    post(shop, "/hardware/h100-sxm5-80gb/edit", **DEVICE)
    assert shop.get("/api/v1/hardware/h100-sxm5-80gb").json()["bandwidth_bytes_per_s"] == 3.35e12


def test_what_textbook_arithmetic_leaves_out_is_one_press_away(site: Site) -> None:
    asked = "model=llama-3-1-8b&hardware=h100-sxm5-80gb&engine=vllm&concurrency=32"
    page = site.client.get(f"/predict?{asked}").text
    way = search(r'knows no engine and no queue\. <a href="([^"]+)">', page)
    assert way is not None
    address = unescape(way[1])
    assert "calibration=default" in address
    assert all(part in address for part in asked.split("&"))
    priced = site.client.get(address).text
    assert "knows no engine" not in priced
    assert "engine profile vLLM" in priced
    assert "knows no engine" not in site.client.get("/predict").text
    # Two devices of which no link is known have no other price, and so no such way.
    assert "knows no engine" not in site.client.get("/predict?tp=2&engine=vllm").text


def test_a_preset_without_an_answer_is_not_offered(site: Site) -> None:
    # The founding text names no link between its devices; arithmetic of weights alone needs none, every other price does.
    assert "Two cards" in site.client.get("/predict").text
    assert "Two cards" not in site.client.get("/predict?calibration=default").text
    assert "Two cards" in site.client.get("/predict?calibration=default&hardware=h100-sxm5-80gb").text
