"""What a GuideLLM report says about model, load and data, which each of its schemas keeps in other places."""

import re
from dataclasses import dataclass, field

from app.domain.checks import Evidence
from app.domain.text import clean_text
from app.formats.identity import NO_MODEL
from app.formats.load import Load, offered_load
from app.formats.record import Record
from app.formats.serving import CLIENT_TOKENIZER, SERVER_USAGE, first_known

_PAIR = re.compile(r"\s*(\w{1,40})\s*=\s*(\d{1,9})\s*\Z")
_CLOSED = frozenset({"concurrent"})
_OFFLINE = frozenset({"throughput"})


@dataclass(frozen=True)
class Setup:
    """The setting of one benchmark; None where the file does not say."""

    schema: int
    model: str | None
    load: Load
    dataset: str | None
    token_count_source: str | None
    labels: dict[str, str] = field(default_factory=dict)
    evidence: Evidence = field(default_factory=Evidence)
    notes: tuple[str, ...] = ()


def setup_of(report: Record, benchmark: Record) -> Setup:
    """Read the setting of `benchmark` in the schema of `report`: its metadata.version, 0 where there is none."""
    version = report.child("metadata").raw("version")
    schema = version if isinstance(version, int) and not isinstance(version, bool) and 0 < version < 1000 else 0
    config = benchmark.child("config") if schema else benchmark.child("args")
    model = _model(report, benchmark, config)
    data = _data(report, benchmark)
    notes = [] if model else [NO_MODEL]
    if schema > 2:
        notes.append(f"The file has schema {schema}, newer than what is known here (2): what has kept its name is read.")
    return Setup(
        schema=schema,
        model=model,
        load=_load(config),
        dataset=data.name,
        token_count_source=_token_source(config, schema),
        labels=_labels(report, benchmark, config, schema),
        evidence=Evidence(requested_prompt_tokens=data.prompt_tokens, requested_output_tokens=data.output_tokens),
        notes=tuple(notes),
    )


def _model(report: Record, benchmark: Record, config: Record) -> str | None:
    spec = report.child("config").child("spec").child("backend")
    return first_known(
        benchmark.child("worker").text("backend_model"),
        config.child("backend").text("model"),
        spec.text("model"),
        report.child("args").text("model"),
    )


def _load(config: Record) -> Load:
    """synchronous: one client; concurrent: a number of them; throughput: everything at once; constant, poisson, async: a rate."""
    strategy, profile = config.child("strategy"), config.child("profile")
    kind = (strategy.text("type_") or "").lower()
    if kind == "synchronous":
        return offered_load(None, 1)
    if kind in _CLOSED:
        return offered_load(None, first_known(strategy.count("streams"), strategy.count("max_concurrency")))
    # A strategy states the tool's own ceiling too; only the profile has one that somebody asked for.
    limit = profile.count("max_concurrency")
    return offered_load("inf" if kind in _OFFLINE else strategy.raw("rate"), limit)


def _token_source(config: Record, schema: int) -> str | None:
    preferred = config.raw("prefer_response_metrics")
    if not schema or not isinstance(preferred, bool):
        return None
    return SERVER_USAGE if preferred else CLIENT_TOKENIZER


@dataclass(frozen=True)
class _Data:
    """The prompts: a name, and the lengths asked for where every request asks for the same."""

    name: str | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None


def _data(report: Record, benchmark: Record) -> _Data:
    loader = benchmark.child("request_loader").raw("data")
    named = loader if isinstance(loader, str) else _first(report.child("args").raw("data"))
    if isinstance(named, str):
        return _described(named)
    spec = _first(report.child("config").child("spec").raw("data"))
    return _specified(Record(spec)) if isinstance(spec, dict) else _Data()


def _first(value: object) -> object:
    return value[0] if isinstance(value, list) and value else value


def _described(text: str) -> _Data:
    """`prompt_tokens=128,output_tokens=128` is a description of synthetic prompts; anything else names a file or a data set."""
    pairs = [_PAIR.match(part) for part in text[:1000].split(",")]
    if not all(pairs):
        return _Data(clean_text(text.replace("\\", "/").rsplit("/", 1)[-1]) or None)
    lengths = {match.group(1): float(match.group(2)) for match in pairs if match}
    fixed = {word: lengths.get(f"{word}_tokens") for word in ("prompt", "output") if not lengths.get(f"{word}_tokens_stdev")}
    return _Data(clean_text(text), fixed.get("prompt"), fixed.get("output"))


def _specified(spec: Record) -> _Data:
    plain = spec.raw("turns") in (None, 1) and not spec.raw("prefix_buckets")
    prompt = spec.positive("prompt_tokens") if plain and not spec.raw("prompt_tokens_stdev") else None
    output = spec.positive("output_tokens") if not spec.raw("output_tokens_stdev") else None
    return _Data(first_known(spec.text("kind"), spec.text("source")), prompt, output)


def _labels(report: Record, benchmark: Record, config: Record, schema: int) -> dict[str, str]:
    labels = {"schema": str(schema)}
    strategy = config.child("strategy")
    concurrency = benchmark.child("metrics").child("request_concurrency").child("successful")
    for source, key, name in (
        (report.child("metadata"), "guidellm_version", "guidellm_version"),
        (strategy, "type_", "strategy"),
        (concurrency, "mean", "measured_concurrency"),
        (benchmark, "warmup_duration", "warmup_s"),
        (benchmark, "cooldown_duration", "cooldown_s"),
        (config.child("backend"), "request_format", "request_format"),
    ):
        if (value := source.label(key)) is not None:
            labels[name] = value
    for key, _ in report.child("config").child("metadata").child("labels").items():
        if (value := report.child("config").child("metadata").child("labels").label(key)) is not None and len(labels) < 40:
            labels.setdefault(clean_text(key, 60), value)
    return labels
