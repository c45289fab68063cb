"""One click to the form of a measurement, filled in: of a prediction, of a run once more, of the two controls that split most questions."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from app.domain.run import Run
from app.pages.job_form import job_query
from app.services.predicting import Answer
from app.services.runs import RunView

_IN_PROCESS = frozenset({"fp32", "bf16", "fp16"})
_FEWEST_STEPS = 2


def measure_prediction(found: Answer) -> str | None:
    """Where a prediction is measured on an attached device; None for what no in-process job builds (several devices, narrow formats)."""
    asked = found.prediction.request
    if asked.tp * asked.pp * asked.dp > 1 or asked.weight_dtype not in _IN_PROCESS or asked.output_tokens < _FEWEST_STEPS:
        return None
    return _address(
        "inprocess_sweep",
        model=found.model.slug,
        dtype=asked.weight_dtype,
        prompt_tokens=[asked.prompt_tokens],
        output_tokens=asked.output_tokens,
        batches=[asked.batch if asked.concurrency is None else asked.concurrency],
    )


def run_links(view: RunView) -> list[tuple[str, str, str]]:
    """Measurements that follow from a run: what the button says, where it leads, and what the measurement tells."""
    run = view.stored.run
    prompt, output = run.workload.prompt_tokens_mean, run.workload.output_tokens_mean
    if prompt is None or output is None:
        return []
    if run.measured_at == "in_process":
        return _in_process(view, round(prompt), round(output))
    if run.measured_at not in ("client", "server"):
        return []
    clients = run.workload.concurrency or 1
    again = _served(run, prompt, output, clients)
    links = [("Measure this again", again, "the same load once more: what differs between the two is noise or a change")]
    if clients > 1:
        links.append(("At one client", _served(run, prompt, output, 1), "no queue and no company: what stays is the phases themselves"))
    if output > 1:
        links.append(("With one token out", _served(run, prompt, 1, clients), "no decode: what stays is queue and prefill"))
    return links


def _in_process(view: RunView, prompt: int, output: int) -> list[tuple[str, str, str]]:
    run = view.stored.run
    if view.model is None or output < _FEWEST_STEPS or run.weight_dtype not in _IN_PROCESS:
        return []
    where = _address(
        "inprocess_sweep",
        model=view.model.slug,
        dtype=run.weight_dtype,
        prompt_tokens=[prompt],
        output_tokens=output,
        batches=[run.workload.concurrency or 1],
    )
    return [("Measure this again", where, "the same passes once more: what differs between the two is noise or a change")]


def _served(run: Run, prompt: float, output: float, clients: int) -> str:
    values = {"model": run.model or "", "prompt_tokens": [max(round(prompt), 1)], "output_tokens": [max(round(output), 1)]}
    deployment = {key: getattr(run, key) for key in ("hardware", "devices", "engine", "weight_dtype")}
    return _address("endpoint_sweep", **values, concurrency=[clients], **deployment)


def _address(kind: str, **parameters: Any) -> str:
    filled: Mapping[str, Any] = {key: value for key, value in parameters.items() if value not in ("", None)}
    return f"/jobs/new?{urlencode(job_query(kind, filled))}"
