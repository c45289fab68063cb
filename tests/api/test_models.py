"""Models over the API: read, add from a config.json, clone, change, delete; what is not priced is refused naming the field."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.shapes import CacheShape, ModelList, ModelShape
from app.services.profiles import MODELS
from tests.answers import API, ok, problem
from tests.applications import context_of
from tests.result_files import served_file

MODELS_PATH = f"{API}/models"
# A Llama of 2 layers: 2 x (attention 4 x 64 x 64 + gated MLP 3 x 64 x 128 + norms 2 x 64) + embedding and head 2 x 1000 x 64 + norm 64.
TINY: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}
TINY_PARAMETERS = 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 1000 * 64 + 64


def test_the_list_has_every_shipped_model_with_what_follows_from_its_shapes(api: TestClient) -> None:
    answer = ok(api.get(MODELS_PATH))
    ModelList.model_validate(answer)
    models = {item["slug"]: item for item in answer["items"]}
    assert len(models) > 40
    llama = models["llama-3-1-8b"]
    assert (llama["origin"], llama["architecture"]["layers"], llama["architecture"]["hidden"]) == ("catalog", 32, 4096)
    # 2 (K and V) x 32 layers x 8 heads x 128 x 2 bytes.
    assert llama["architecture"]["kv_bytes_per_token"] == 131_072
    assert llama["architecture"]["parameters"] == 8_030_261_248
    assert all(item["label"] and item["source"] for item in answer["items"])


def test_an_unknown_model_is_404(api: TestClient) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        body = {"json": {}} if method == "PATCH" else {}
        problem(api.request(method, f"{MODELS_PATH}/no-such-model", **body), 404, "There is no model “no-such-model”", "/models")


def test_a_pasted_config_becomes_a_model_that_is_priced(api: TestClient) -> None:
    created = ok(api.post(MODELS_PATH, json={"name": "Our Tiny", "config": TINY, "aliases": ["acme/our-tiny-v1", " "]}), 201)
    ModelShape.model_validate(created)
    assert (created["slug"], created["origin"], created["aliases"]) == ("our-tiny", "user", ["acme/our-tiny-v1"])
    assert created["architecture"]["parameters"] == TINY_PARAMETERS
    assert ok(api.get(f"{MODELS_PATH}/our-tiny")) == created
    assert ok(api.get(MODELS_PATH))["items"][0] == created
    # Textbook decode: one read of all weights, two bytes each, at the device's bandwidth.
    prediction = ok(api.get(f"{API}/predict", params={"model": "our-tiny", "hardware": "textbook-h100"}))
    assert prediction["itl_s"] == pytest.approx(TINY_PARAMETERS * 2 / 3.35e12)


@pytest.mark.parametrize("spelling", ["our-found", "OUR FOUND", "acme/Our-Found-9B", "Our-Found-9B-Instruct", "someone/our-found-9b-FP8"])
def test_a_model_of_ones_own_is_found_however_written(api: TestClient, spelling: str) -> None:
    if api.get(f"{MODELS_PATH}/our-found").status_code == 404:
        ok(api.post(MODELS_PATH, json={"name": "Our Found", "config": TINY, "aliases": ["acme/Our-Found-9B"]}), 201)
    assert ok(api.get(f"{API}/predict", params={"model": spelling}))["memory"]["weight_bytes"] == 2 * TINY_PARAMETERS


def test_a_clone_is_priced_as_its_base(api: TestClient) -> None:
    clone = ok(api.post(MODELS_PATH, json={"clone_of": "Llama-3.1-8B-Instruct", "name": "our fine-tune"}), 201)
    assert (clone["slug"], clone["aliases"]) == ("our-fine-tune", [])
    base, ours = (
        ok(api.get(f"{API}/predict", params={"model": slug, "hardware": "h100-sxm5-80gb", "calibration": "default"}))
        for slug in ("llama-3-1-8b", "our-fine-tune")
    )
    assert ours["total_s"] == base["total_s"]


def test_only_the_keys_given_change(api: TestClient) -> None:
    ok(api.post(MODELS_PATH, json={"name": "changing", "config": TINY, "aliases": ["a"]}), 201)
    before = ok(api.get(f"{MODELS_PATH}/changing"))
    assert ok(api.patch(f"{MODELS_PATH}/changing", json={})) == before
    renamed = ok(api.patch(f"{MODELS_PATH}/changing", json={"name": "Changed"}))
    assert (renamed["slug"], renamed["name"], renamed["aliases"]) == ("changing", "Changed", ["a"])
    assert {**renamed["architecture"], "name": ""} == {**before["architecture"], "name": ""}
    ok(api.patch(f"{MODELS_PATH}/changing", json={"aliases": []}))
    deeper = ok(api.patch(f"{MODELS_PATH}/changing", json={"config": {**TINY, "num_hidden_layers": 4}}))
    assert (deeper["architecture"]["layers"], deeper["name"], deeper["aliases"]) == (4, "Changed", [])


def test_the_config_that_a_model_was_made_from_stays_with_it(api: TestClient) -> None:
    ok(api.post(MODELS_PATH, json={"name": "with source", "config": TINY}), 201)
    ok(api.patch(f"{MODELS_PATH}/with-source", json={"aliases": ["b"]}))
    with context_of(api).database.read() as session:
        assert MODELS.require(session, "with-source").source == TINY


def test_a_name_that_is_taken_is_409(api: TestClient) -> None:
    ok(api.post(MODELS_PATH, json={"name": "taken", "config": TINY}), 201)
    problem(api.post(MODELS_PATH, json={"name": "Taken!", "config": TINY}), 409, "“taken”", "choose another name")
    problem(api.post(MODELS_PATH, json={"name": "Llama 3.1 8B", "config": TINY}), 409, "llama-3-1-8b")


def test_shipped_models_are_read_only(api: TestClient) -> None:
    problem(api.patch(f"{MODELS_PATH}/llama-3-1-8b", json={"name": "mine"}), 409, "belongs to the catalog", "clone it")
    problem(api.delete(f"{MODELS_PATH}/llama-3-1-8b"), 409, "belongs to the catalog")


def test_a_change_is_no_clone(api: TestClient) -> None:
    ok(api.post(MODELS_PATH, json={"name": "own", "config": TINY}), 201)
    problem(api.patch(f"{MODELS_PATH}/own", json={"clone_of": "llama-3-1-8b"}), 422, "clone_of")


NOT_PRICED: dict[str, tuple[dict[str, Any], str]] = {
    "more experts than there are": ({"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 8}, "num_local_experts"),
    "latent attention without its sizes": ({"model_type": "deepseek_v3", "n_routed_experts": 256, "kv_lora_rank": 512}, "qk_nope_head_dim"),
    "blocks of their own": ({"model_type": "nemotron-nas", "block_configs": [{}]}, "block_configs"),
    "experts in a Llama": ({"num_local_experts": 8, "num_experts_per_tok": 2}, "num_local_experts"),
    "experts by another key": ({"num_experts": 128}, "num_experts"),
    "routed experts": ({"n_routed_experts": 256}, "n_routed_experts"),
    "latent attention": ({"model_type": "llama", "kv_lora_rank": 512}, "kv_lora_rank"),
    "a state-space model without heads": ({"model_type": "mamba2", "state_size": 128}, "num_heads"),
    "no kind": ({"model_type": None}, "model_type"),
    "an unknown kind": ({"model_type": "brand_new"}, "model_type"),
    "no layers": ({"num_hidden_layers": None}, "num_hidden_layers"),
    "a width that is a text": ({"hidden_size": "64"}, "hidden_size"),
    "a negative width": ({"hidden_size": -64}, "hidden_size"),
    "a width beyond any": ({"hidden_size": 10**30}, "hidden_size"),
    "heads that do not divide": ({"num_attention_heads": 3}, "num_key_value_heads"),
}


@pytest.mark.parametrize("case", NOT_PRICED)
def test_what_is_not_priced_is_refused_naming_the_field(api: TestClient, case: str) -> None:
    changes, field = NOT_PRICED[case]
    config = {key: value for key, value in {**TINY, **changes}.items() if value is not None}
    body = problem(api.post(MODELS_PATH, json={"name": "refused", "config": config}), 422, field)
    assert body["field"] == field
    assert body["detail"].count(". ") == 0, "one sentence"
    problem(api.get(f"{MODELS_PATH}/refused"), 404)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "***", "config": TINY}, "name"),
        ({"name": "x"}, "config"),
        ({"name": "x", "config": {}}, "model_type"),
    ],
)
def test_what_is_missing_is_named(api: TestClient, body: dict[str, Any], field: str) -> None:
    assert problem(api.post(MODELS_PATH, json=body), 422)["field"] == field


def test_code_in_a_config_is_data(api: TestClient) -> None:
    """`auto_map` makes other tools import a file; here it is an ignored key."""
    config = {**TINY, "auto_map": {"AutoConfig": "evil.py--EvilConfig"}, "trust_remote_code": True}
    created = ok(api.post(MODELS_PATH, json={"name": "auto map", "config": config}), 201)
    assert created["architecture"]["parameters"] == TINY_PARAMETERS


def test_deleting_a_model_leaves_its_runs_with_their_words(api: TestClient) -> None:
    ok(api.post(MODELS_PATH, json={"clone_of": "llama-3-1-8b", "name": "passing model"}), 201)
    fields = {"model": "passing model", "hardware": "h100-sxm5-80gb"}
    run = ok(api.post(f"{API}/runs", params=fields, content=served_file(1)), 201)["runs"][0]
    assert (run["model_slug"], run["efficiency"]["against"]) == ("passing-model", "peak")
    assert api.delete(f"{MODELS_PATH}/passing-model").status_code == 204
    after = ok(api.get(f"{API}/runs/{run['id']}"))
    assert after["model"] == "passing model"
    assert "efficiency" not in after
    assert any("“passing model” has no entry here" in warning for warning in after["warnings"])


def test_a_run_is_matched_to_a_model_of_ones_own_by_the_name_in_its_file(api: TestClient) -> None:
    ok(api.post(MODELS_PATH, json={"clone_of": "llama-3-1-8b", "name": "served name", "aliases": ["acme/served-as-this"]}), 201)
    data = served_file(2, model_id="other-owner/Served-As-This-Instruct")
    run = ok(api.post(f"{API}/runs", params={"hardware": "h100-sxm5-80gb"}, content=data), 201)["runs"][0]
    assert run["model_slug"] == "served-name"
    assert "efficiency" in run


def test_the_cache_of_pieces_of_a_config(api: TestClient) -> None:
    """32 layers, 2 · 8 · 128 elements of one byte each: 65,536 bytes a token, 2^26 for 1,024."""
    config = {"num_hidden_layers": 32, "num_key_value_heads": 8, "head_dim": 128}
    found = ok(api.post(f"{API}/kv-cache", json={"config": config, "context": 1024, "kv_dtype": "fp8"}))
    CacheShape.model_validate(found)
    assert (found["kv_bytes_per_token"], found["kv_bytes"], found["kv_gib"]) == (65_536, 2**26, 0.0625)
    assert found["expanded"] == {"kv_bytes_per_token": None, "factor": None}
    assert found["unwindowed"]["factor"] == 1.0


def test_the_cache_of_a_config_with_a_model_type_is_that_of_its_model(api: TestClient) -> None:
    found = ok(api.post(f"{API}/kv-cache", json={"config": TINY, "context": 10}))
    assert (found["num_hidden_layers"], found["kv_bytes"]) == (2, 2 * 2 * 4 * 16 * 2 * 10)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"config": {"num_hidden_layers": 2}}, "num_attention_heads"),
        ({"config": {"model_type": "brand_new"}}, "model_type"),
        ({"config": TINY, "kv_dtype": "awq"}, "kv_dtype"),
        ({"config": TINY, "context": 0}, "context"),
        ({}, "config"),
    ],
)
def test_a_cache_that_cannot_be_told_is_refused_by_field(api: TestClient, body: dict[str, Any], field: str) -> None:
    answer = problem(api.post(f"{API}/kv-cache", json=body), 422)
    assert field in str(answer.get("errors", answer))
