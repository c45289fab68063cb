"""Forms of jobs: made from the parameter models, filled from an address, refused beside the field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from app.jobs import KINDS, read_parameters
from app.pages.job_form import job_query, read_job_form

LEAST = {"endpoint_sweep": {"target": "here", "model": "m"}, "llama_bench": {"gguf": "m.gguf"}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_has_every_parameter_and_its_defaults_mean_themselves(kind: str) -> None:
    form = read_job_form(kind, {})
    assert [field.key for field in form.fields] == list(KINDS[kind].model_fields)
    shown = {field.key: field.value for field in form.fields if field.entry != "tick"}
    again = read_job_form(kind, {**shown, **LEAST.get(kind, {}), "sent": "1"})
    assert read_parameters(KINDS[kind], again.parameters) == read_parameters(KINDS[kind], LEAST.get(kind, {}))


@pytest.mark.parametrize("kind", KINDS)
def test_an_address_carries_what_differs_and_fills_the_form_with_it(kind: str) -> None:
    least = read_parameters(KINDS[kind], LEAST.get(kind, {})).model_dump(mode="json")
    assert job_query(kind, least) == [("kind", kind), *LEAST.get(kind, {}).items()]


@given(prompts=st.lists(st.integers(1, 100_000), min_size=1, max_size=5), rate=st.floats(0.1, 1000), knee=st.booleans())
def test_parameters_survive_the_address(prompts: list[int], rate: float, knee: bool) -> None:
    asked = {
        "target": "here",
        "model": "a b/c&d",
        "prompt_tokens": prompts,
        "concurrency": [],
        "rates_per_s": [round(rate, 3)],
        "find_knee": knee,
    }
    wanted = read_parameters(KINDS["endpoint_sweep"], asked)
    query = job_query("endpoint_sweep", wanted.model_dump(mode="json"))
    form = read_job_form("endpoint_sweep", QueryParams(query))
    found = read_parameters(KINDS["endpoint_sweep"], form.parameters)
    assert found.model_dump(exclude={"rates_per_s"}) == wanted.model_dump(exclude={"rates_per_s"})
    assert found.model_dump()["rates_per_s"] == pytest.approx(wanted.model_dump()["rates_per_s"], rel=1e-5)


def test_a_tick_that_was_taken_away_is_no() -> None:
    assert "cuda_graphs" not in read_job_form("inprocess_sweep", {}).parameters
    assert read_job_form("inprocess_sweep", {"sent": "1"}).parameters["cuda_graphs"] is False
    assert read_job_form("inprocess_sweep", {"sent": "1", "cuda_graphs": "true"}).parameters["cuda_graphs"] is True


def test_a_message_of_an_item_stands_beside_its_list() -> None:
    form = read_job_form("device_microbench", {"dtypes": "fp32, fp99"}).with_error("dtypes.1", "no such format")
    assert {field.key: field.error for field in form.fields if field.error} == {"dtypes": "no such format"}
    assert form.names("dtypes.1")
    assert not form.names("device")
