"""What no device can do: a phase faster than the floor of its own bytes and FLOPs, and prompts that cannot all have been computed.

    decode step   >= bytes of one step / bandwidth                  weights once, KV of every running sequence
    prompt pass   >= FLOPs of the prompt / peak                     TTFT holds the pass and more, so it obeys too
    whole request >= prompt pass + (output tokens - 1) x first step
    whole load    >= FLOPs of all prompts / peak of all devices     each phase of one request may obey, and the load as a whole not

(diagnosis.md, gate G1.) Floors are those of the run's own workload at the specified peaks.
"""

from app.domain.derive import tokens_per_chunk
from app.domain.observed import measured_times, observed, observed_step
from app.domain.prediction import Prediction
from app.domain.quantity import flops_rate, percent, seconds
from app.domain.run import Flag, Run

# Faster than the device has been seen to compute by this much: part of the prompt was not computed.
FASTER_THAN_ACHIEVED = 1.3
# Below this many tokens a prompt pass is mostly one read of the weights, and its arithmetic says nothing.
LONG_PROMPT = 256
# Clients over the mean time of a request are what a server does in a second where they end together; where one is served after the other
# the last one's time is all work there was and the mean half of it.
CLIENTS_THAT_END_APART = 2.0
DECODE_RATES = ("decode_tokens_per_s", "interactivity_tokens_per_s", "mbu")
PREFILL_RATES = ("prefill_tokens_per_s", "mfu")
OUTPUT_RATES = ("e2e_output_tokens_per_s", "output_tokens_per_s", "total_tokens_per_s")


def physics_flags(run: Run, prediction: Prediction, peak_flops_per_s: float) -> tuple[Flag, ...]:
    """Flags of a run beside the prediction of its own workload; empty where nothing is faster than it can be.

    `peak_flops_per_s` is the specified rate of one device for the arithmetic of this pass.
    """
    found = [_decode(run, prediction), _prompt_pass(run, prediction)]
    if found == [None, None]:
        found.append(_whole_request(run, prediction))
    found.append(_whole_load(run, prediction, peak_flops_per_s))
    found.append(_cached_prompts(run, prediction, peak_flops_per_s))
    return tuple(flag for flag in found if flag is not None)


def _decode(run: Run, prediction: Prediction) -> Flag | None:
    step = observed(run, "step_s") or observed_step(run)
    floor_s = prediction.decode.floor_s
    if step is None or step.value_s >= floor_s:
        return None
    text = (
        f"Decode takes {seconds(step.value_s)} a token, less than the {seconds(floor_s)} that reading the bytes of one "
        "step needs: several tokens a step (speculation), or another model, number format or device count."
    )
    per_chunk = tokens_per_chunk(run.samples) if run.samples is not None else None
    figures = {"step_s": step.value_s, "floor_s": floor_s, "over_limit": floor_s / step.value_s}
    return Flag("impossible_above_roofline", text, DECODE_RATES, figures | ({} if per_chunk is None else {"tokens_per_chunk": per_chunk}))


def _prompt_pass(run: Run, prediction: Prediction) -> Flag | None:
    alone = observed(run, "prefill_s")
    time_s = alone.value_s if alone is not None else _typical_ttft_s(run)
    floor_s = prediction.prefill.floor_s
    if time_s is None or time_s >= floor_s:
        return None
    text = (
        f"The prompt took {seconds(time_s)}, less than the {seconds(floor_s)} of its arithmetic at the specified "
        "peak: cached prefixes, shorter prompts, or another model, number format or device."
    )
    return Flag("impossible_above_roofline", text, PREFILL_RATES, {"prefill_s": time_s, "floor_s": floor_s, "over_limit": floor_s / time_s})


def _typical_ttft_s(run: Run) -> float | None:
    """TTFT of a typical prompt of mean length, in seconds: the smaller of mean and median per prompt token."""
    per_token, prompt = run.distribution("ttft_per_prompt_token_s"), run.workload.prompt_tokens_mean
    if not prompt or "ttft_s" in run.withheld or (prompt < LONG_PROMPT and run.workload.concurrency != 1):
        return None
    if per_token is None:
        first = observed(run, "ttft_s")
        return None if first is None else first.value_s
    known = [value for value in (per_token.p50, per_token.mean) if value]
    return min(known) * prompt if known else None


def _whole_request(run: Run, prediction: Prediction) -> Flag | None:
    whole, output = observed(run, "e2e_s"), run.workload.output_tokens_mean
    if whole is None or output is None:
        return None
    floor_s = prediction.prefill.floor_s + max(output - 1, 0) * prediction.decode.floor_s
    if whole.value_s >= floor_s:
        return None
    text = (
        f"The whole request took {seconds(whole.value_s)}, less than the {seconds(floor_s)} that its {output:.5g} output tokens need "
        "at least: answers ended early and the lengths are those asked for, or another model, number format or device count."
    )
    return Flag("impossible_above_roofline", text, OUTPUT_RATES, {"e2e_s": whole.value_s, "floor_s": floor_s})


def _whole_load(run: Run, prediction: Prediction, peak_flops_per_s: float) -> Flag | None:
    counted, whole_s, clients = run.rate("requests_per_s"), measured_times(run).total_s, run.workload.concurrency
    if any(flag.flag == "prefix_cache_hits" for flag in run.flags):
        return None
    if counted is not None and "requests_per_s" not in run.withheld:
        pace, most, fewer = counted.value, 1.0, ""
    elif run.load_mode == "closed" and whole_s and clients:
        pace, most, fewer = clients / whole_s, CLIENTS_THAT_END_APART, "fewer clients than stated, "
    else:
        return None
    devices = max(run.devices or 0, (run.tp or 1) * (run.pp or 1) * (run.dp or 1))
    share = share_of_arithmetic(prediction, peak_flops_per_s, pace, devices)
    if share <= most:
        return None
    text = (
        f"{pace:.4g} requests a second with {run.workload.prompt_tokens_mean or 0:,.0f} prompt tokens each need {percent(share)} of the "
        f"specified arithmetic of {devices} device{'s' if devices > 1 else ''} for their prompts alone: cached prefixes, shorter prompts, "
        f"{fewer}or another model, number format or device count."
    )
    figures = {"requests_per_s": pace, "share_of_peak": share, "over_limit": share / most}
    return Flag("impossible_above_roofline", text, (*PREFILL_RATES, *OUTPUT_RATES), figures)


def share_of_arithmetic(prediction: Prediction, peak_flops_per_s: float, requests_per_s: float, devices: float) -> float:
    """What part of the specified FLOP/s of `devices` computing so many prompts a second takes; above 1 nothing can.

    0 where reading bytes bounds a prompt: prompts that are computed together share that read. `peak_flops_per_s` is that of one device.
    The pass of a static batch holds all its prompts.
    """
    cost, request, bandwidth = prediction.prefill, prediction.request, peak_flops_per_s / prediction.ridge_peak
    if prediction.pools is not None or cost.floor_s <= cost.bytes / bandwidth:
        return 0.0
    return requests_per_s * cost.floor_s / request.batch * request.tp / devices


def _cached_prompts(run: Run, prediction: Prediction, peak_flops_per_s: float) -> Flag | None:
    time_s, prompt = _typical_ttft_s(run), run.workload.prompt_tokens_mean
    cost = prediction.prefill
    if time_s is None or not prompt or prompt < LONG_PROMPT or any(flag.flag == "prefix_cache_hits" for flag in run.flags):
        return None
    if time_s >= cost.attainable_s / FASTER_THAN_ACHIEVED:
        return None
    implied = cost.flops / time_s
    figures = {"implied_flops_per_s": implied, "share_of_peak": implied / peak_flops_per_s}
    per_token = run.distribution("ttft_per_prompt_token_s")
    if per_token is not None and per_token.max:
        figures["slowest_share_of_peak"] = cost.flops / (per_token.max * prompt) / peak_flops_per_s
    text = (
        f"A typical TTFT of {seconds(time_s)} for {prompt:,.0f} prompt tokens would take {flops_rate(implied)}, "
        f"{percent(figures['share_of_peak'])} of the specified peak"
    )
    text += ": the prompts, or most of them, were found in a cache. It says nothing about prefill."
    return Flag("prefix_cache_hits", text, PREFILL_RATES, figures)
