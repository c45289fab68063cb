"""What a benchmark.json of optimum-benchmark says about model, device, formats and lengths; a report alone says none of it."""

from dataclasses import dataclass

from app.domain.run import Run
from app.formats.identity import said_word
from app.formats.record import Record
from app.formats.serving import first_known

# Names of back ends whose engine is called otherwise.
_ENGINES = {"pytorch": "transformers", "tensorrt-llm": "tensorrt-llm", "llama_cpp": "llama.cpp"}
_LABELS = ("task", "library", "attn_implementation", "cache_implementation", "torch_compile", "torch_compile_target", "device_map")
_TEXT = "text-generation"


@dataclass(frozen=True)
class Setup:
    """The identity of a run as a run without figures, and the sizes of its batch, None where they are not said."""

    run: Run
    batch: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    makes_text: bool = False


def setup_of(record: Record) -> Setup:
    """Read `config` of a benchmark.json: `backend`, `scenario` (in 2024 `benchmark`), `environment`."""
    config = record.child("config")
    backend, environment = config.child("backend"), config.child("environment")
    scenario = config.child("scenario") if "scenario" in config else config.child("benchmark")
    shapes, generate = scenario.child("input_shapes"), scenario.child("generate_kwargs")
    name = backend.text("name")
    engine = _ENGINES.get(name, name) if name else None
    version = environment.text("transformers_version") if engine == "transformers" else backend.text("version")
    run = Run(
        format="",
        engine=engine,
        engine_version=version,
        model=backend.text("model"),
        hardware=_hardware(backend, environment),
        devices=_devices(backend),
        weight_dtype=first_known(said_word(backend, "quantization_scheme"), said_word(backend, "torch_dtype"), said_word(backend, "dtype")),
        label=config.text("name"),
        labels=_labels(backend, environment, generate),
    )
    return Setup(
        run,
        batch=shapes.count("batch_size") or None,
        prompt_tokens=shapes.count("sequence_length") or None,
        output_tokens=_output_tokens(scenario, generate),
        makes_text=backend.text("task") == _TEXT,
    )


def _output_tokens(scenario: Record, generate: Record) -> int | None:
    """New tokens of a sequence, where the run was made to give exactly as many; beams make more of them."""
    most, fewest = generate.count("max_new_tokens"), generate.count("min_new_tokens")
    asked = most if most == fewest else None
    return None if generate.raw("num_beams") not in (None, 1) else first_known(asked, scenario.count("new_tokens")) or None


def _hardware(backend: Record, environment: Record) -> str | None:
    """The kind of device that ran it, where all devices in question are of one kind."""
    if backend.text("device") == "cpu":
        return environment.text("cpu")
    names = environment.sequence("gpu")
    if names is None:
        return environment.text("gpu")
    words = [name for name in names if isinstance(name, str)]
    ids = [int(each) for each in _ids(backend) if each.isdecimal() and int(each) < len(words)]
    kinds = {words[each] for each in ids} if ids else set(words)
    return Record({"gpu": kinds.pop()}).text("gpu") if len(kinds) == 1 else None


def _devices(backend: Record) -> int | None:
    return None if backend.text("device") == "cpu" else len(_ids(backend)) or None


def _ids(backend: Record) -> list[str]:
    """The devices asked for, like "2,4"."""
    return [part.strip() for part in (backend.label("device_ids") or "").split(",") if part.strip()][:1024]


def _labels(backend: Record, environment: Record, generate: Record) -> dict[str, str]:
    labels = {key: value for key in _LABELS if (value := backend.label(key)) is not None and value != "false"}
    for source, key in ((environment, "optimum_benchmark_version"), (generate, "cache_implementation"), (backend, "version")):
        if (value := source.label(key)) is not None:
            labels["backend_version" if key == "version" else key] = value
    return labels
