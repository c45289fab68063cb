"""`phaseline predict` and `phaseline calibrate`: what a request costs, without a server."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from app.catalog import load
from app.commands.common import Json, print_json, ready_context
from app.domain.simulation import Target
from app.services import calibrating
from app.services.local_profiles import local_book
from app.services.plain_text import pools_lines, prediction_lines, under_load_lines
from app.services.predicting import answer, at_own_moments, question_of
from app.services.prediction_json import answer_json
from app.services.profiles import catalog_book, read_book
from app.services.under_load import Arrivals, simulate

# Options of `predict` whose key in a request is another.
_REQUEST_KEYS = {"prompt": "prompt_tokens", "output": "output_tokens", "cached_prefix": "cached_prefix_tokens"}


def predict(
    context: typer.Context,
    model: Annotated[str, typer.Option(help="Slug of the catalog, or the path of a config.json.")] = "textbook-8b",
    hardware: Annotated[str, typer.Option(help="Slug of the catalog, or the path of a hardware .json.")] = "textbook-h100",
    prompt: Annotated[int, typer.Option(help="Prompt tokens.")] = 2000,
    output: Annotated[int, typer.Option(help="Output tokens.")] = 300,
    batch: Annotated[int, typer.Option(help="Sequences in one pass.")] = 1,
    concurrency: Annotated[int | None, typer.Option(help="Closed-loop clients.")] = None,
    cached_prefix: Annotated[int, typer.Option(help="Prompt tokens already in the cache.")] = 0,
    tp: Annotated[int, typer.Option(help="Tensor-parallel degree.")] = 1,
    pp: Annotated[int, typer.Option(help="Pipeline degree.")] = 1,
    ep: Annotated[int, typer.Option(help="Expert-parallel degree.")] = 1,
    dp: Annotated[int, typer.Option(help="Attention ranks that share the sequences.")] = 1,
    weight_dtype: Annotated[str, typer.Option(help="Number format of the weights.")] = "bf16",
    activation_dtype: Annotated[str, typer.Option(help="Number format of the activations.")] = "bf16",
    kv_dtype: Annotated[str, typer.Option(help="Number format of the KV cache.")] = "bf16",
    moe_dtype: Annotated[str | None, typer.Option(help="Number format of the experts; else what checkpoints use.")] = None,
    comm_dtype: Annotated[str | None, typer.Option(help="Number format of what crosses a link; else the activations'.")] = None,
    engine: Annotated[str | None, typer.Option(help="Engine profile.")] = None,
    calibration: Annotated[str, typer.Option(help="textbook, default, or the number of a calibration stored here.")] = "default",
    requests_per_client: Annotated[int, typer.Option(help="Requests that each client sends, the burst at the start among them.")] = 10,
    open_loop: Annotated[bool, typer.Option("--open-loop", help="They come at their own moments, --concurrency are in flight.")] = False,
    shortest_length: Annotated[float, typer.Option(help="Lengths are drawn between this share and 1 of the given ones; 1: equal.")] = 1.0,
    draft_tokens: Annotated[int, typer.Option(help="Speculation: tokens drafted in each step.")] = 0,
    acceptance: Annotated[float, typer.Option(help="Speculation: chance that a drafted token is accepted, given those before.")] = 0.0,
    prefill_replicas: Annotated[int | None, typer.Option(help="Replicas that prefill alone; the others then decode alone.")] = None,
    decode_replicas: Annotated[int, typer.Option(help="Replicas that decode alone, each of the tp, dp and ep above.")] = 1,
    prefill_tp: Annotated[int | None, typer.Option(help="Tensor-parallel degree of a prefill replica.")] = None,
    prefill_dp: Annotated[int | None, typer.Option(help="Attention ranks of a prefill replica.")] = None,
    prefill_ep: Annotated[int | None, typer.Option(help="Expert-parallel degree of a prefill replica.")] = None,
    transfer_bytes_per_s: Annotated[float | None, typer.Option(help="What a device reaches between the pools; else its link.")] = None,
    simulated: Annotated[bool, typer.Option("--simulate", help="Run the load of the clients pass by pass.")] = False,
    rate: Annotated[float | None, typer.Option(help="Requests come at this rate a second instead of from clients; simulated too.")] = None,
    requests: Annotated[int, typer.Option(help="How many of them.")] = 300,
    seed: Annotated[int, typer.Option(help="Draws arrivals and lengths.")] = 0,
    ttft_target: Annotated[float | None, typer.Option(help="Goodput: seconds to the first token at most.")] = None,
    tpot_target: Annotated[float | None, typer.Option(help="Goodput: seconds for each further token at most.")] = None,
    as_json: Json = False,
) -> None:
    """What both halves of a request cost, without a server."""
    base = read_book(ready_context()) if calibration.isdigit() else catalog_book(load())
    book, names = local_book(base, model, hardware)
    values = {_REQUEST_KEYS.get(name, name): value for name, value in context.params.items()}
    found = answer(book, at_own_moments(question_of({**values, **names}), rate))
    target = Target(ttft_target, tpot_target)
    served = None
    if simulated or rate is not None or target != Target():
        served = simulate(found, Arrivals(request_rate_per_s=rate, requests=requests, seed=seed), target)
    if as_json:
        print_json(answer_json(found, served))
        return
    print("\n".join([*(under_load_lines(served) if served else ()), *pools_lines(found), *prediction_lines(found.prediction)]))


def calibrate(
    hardware: Annotated[str, typer.Option(help="Slug of the device.")],
    engine: Annotated[str | None, typer.Option(help="Engine profile; left out: runs whose engine has none.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Weight format, where the runs have several.")] = None,
    as_json: Json = False,
) -> None:
    """Fit five scalars to the stored runs of a device and an engine."""
    found = calibrating.calibrate(ready_context(), hardware, engine, dtype, datetime.now(UTC))
    if as_json:
        print_json(calibrating.calibration_json(found))
        return
    print("\n".join(calibrating.calibration_lines(found)))
