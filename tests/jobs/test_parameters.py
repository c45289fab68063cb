"""Parameters of jobs: read whole or refused by field."""

import pytest

from app.domain.errors import InvalidRequest
from app.jobs import KINDS, DeviceFacts, read_parameters

CPU = DeviceFacts(name="this processor", kind="cpu", backends=("numpy",))
LEAST = {
    "device_microbench": {},
    "inprocess_sweep": {"model": "textbook-8b"},
    "endpoint_sweep": {"target": "here", "model": "m"},
    "llama_bench": {"gguf": "m.gguf"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_are_enough_and_every_field_says_what_it_is(kind: str) -> None:
    parameters = read_parameters(KINDS[kind], LEAST[kind])
    assert parameters.estimate(CPU).seconds > 0
    assert read_parameters(KINDS[kind], parameters.model_dump()) == parameters
    assert all(field.title for field in KINDS[kind].model_fields.values())


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_key_is_refused_by_name(kind: str) -> None:
    with pytest.raises(InvalidRequest, match="command") as refused:
        read_parameters(KINDS[kind], {**LEAST[kind], "command": "rm"})
    assert refused.value.field == "command"


@pytest.mark.parametrize(
    "loop", [{"concurrency": (), "rates_per_s": ()}, {"concurrency": (1,), "rates_per_s": (2.0,)}, {"arrivals_s": (0.0, 1.0)}]
)
def test_a_sweep_is_a_closed_or_an_open_loop(loop: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="give one of concurrency"):
        read_parameters(KINDS["endpoint_sweep"], {**LEAST["endpoint_sweep"], **loop})


@pytest.mark.parametrize("name", ["../m.gguf", "a/b.gguf", "-m.gguf", "m.gguf; rm", "m.bin", ""])
def test_a_model_file_is_a_name_and_never_a_path_or_an_option(name: str) -> None:
    with pytest.raises(InvalidRequest, match="gguf"):
        read_parameters(KINDS["llama_bench"], {"gguf": name})
