"""Everything that can be worked out from a subject, or from two, by name: the only thing that rules look at.

Names carry their unit: `_s`, `_bytes`, `_per_s`; `_change` is other / base - 1, `_share` a part of a whole, `_added_s` other - base. What
is not known has no entry. A pair is looked at where both have a run: at the highest load for the phases, and alone (one client) as the
control that tells load from work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from app.domain.attribution import attribute
from app.domain.comparison import LENGTH_TOLERANCE, SPREADS_PER_NOISE
from app.domain.diagnosis import times
from app.domain.diagnosis.changes import Seen, changed, moved
from app.domain.diagnosis.curves import Level, along, axis_of, device_curve, load_curve, place, prompt_curve, step_in_batch
from app.domain.diagnosis.floors import counted, floors, shares
from app.domain.diagnosis.repeats import repeats, spread
from app.domain.diagnosis.settings import settings_changes
from app.domain.diagnosis.subject import Setup, Subject
from app.domain.diagnosis.thresholds import NOISE
from app.domain.diagnosis.within import within_runs
from app.domain.observed import observed
from app.domain.run import Run

MEASURED_IN_ROWS = frozenset({"bimodal_itl", times.OPENING_WAVE, "mean_dominated_by_outlier"})


@dataclass(frozen=True)
class Observed:
    """What was derived: quantities by name, points of a curve, and the flags that the runs carry."""

    figures: Seen
    levels: tuple[Level, ...] = ()
    flags: frozenset[str] = frozenset()


def observe(subject: Subject, told: Seen | None = None) -> Observed:
    """What one deployment's runs say. `told` are quantities that somebody states; they stand in place of derived ones."""
    runs, setup = along(subject.runs), subject.setup
    last = runs[-1]
    if axis_of(runs) == "tp":
        setup = replace(setup, devices=place(last, "tp"))
    figures: dict[str, float] = {**setup.known, **floors(setup)}
    curve, levels = prompt_curve(runs)
    loaded, load_levels = load_curve(runs)
    figures |= {**curve, **loaded, **device_curve(runs), **step_in_batch(runs)}
    if axis_of(runs) is None:
        figures |= repeats(runs)
    step = times.step(last)
    if step is not None:
        figures |= {"step_s": step, **shares(setup, step), **_counters(setup, last, step), **_arithmetic(setup, last)}
    figures |= _told_by_flags(last)
    figures |= {**_first_token_parts(last), **_prefill_shares(setup, last), **_links(setup, runs)}
    if setup.graph_limit is not None and "step_from_batch" in figures:
        within = figures["step_from_batch"] <= setup.graph_limit < figures["step_to_batch"]
        figures["step_at_graph_limit"] = float(within)
    figures |= told or {}
    flags = frozenset(flag.flag for run in runs for flag in run.flags)
    return Observed(finite(figures), levels or load_levels, flags)


def _told_by_flags(run: Run) -> Seen:
    """Where the step jumps over the batch, as the check of the run's own rows found it."""
    found = next((flag.figures for flag in run.flags if flag.flag == "bimodal_itl" and "step_ratio" in flag.figures), {})
    return {name: float(found[name]) for name in ("step_from_batch", "step_to_batch", "step_ratio") if name in found}


def finite(figures: Mapping[str, float]) -> dict[str, float]:
    """The entries that are numbers: an infinite chunk budget is a setting, not a quantity to show."""
    return {name: value for name, value in figures.items() if isfinite(value)}


def _counters(setup: Setup, run: Run, step_s: float) -> Seen:
    rate = times.rate_of(run, "bytes_per_s")
    return {} if rate is None else counted(setup, rate, step_s)


def _arithmetic(setup: Setup, run: Run) -> Seen:
    """FLOPs of decode by 2 P a token, against the peak; and sequences in a step by Little's law."""
    rate, step_s = times.rate_of(run, "output_tokens_per_s"), times.step(run)
    found: dict[str, float] = {}
    if rate is None:
        return found
    if step_s is not None:
        found["running"] = rate * step_s
    count = setup.active_parameters if setup.active_parameters is not None else setup.parameters
    if count is not None:
        found["decode_flops_per_s"] = 2 * count * rate
        if setup.peak_flops_per_s is not None:
            found["decode_flops_share"] = found["decode_flops_per_s"] / (setup.peak_flops_per_s * (setup.devices or 1.0))
    return found


def _first_token_parts(run: Run) -> Seen:
    """The first token and which part of it was queue, as far as the run says."""
    found: dict[str, float] = {}
    first, queue = times.first_token(run), times.stat_of(run, "queue_s", "mean")
    if first is not None:
        found["first_token_s"] = first
        if queue is not None:
            found["queue_share"] = queue / first
    prompt = run.workload.prompt_tokens_mean
    if prompt and first is not None:
        found["first_token_s_per_prompt_token"] = first / prompt
    return found


def _prefill_shares(setup: Setup, run: Run) -> Seen:
    """The prompt pass against both denominators, where it was measured alone or nothing ran beside it."""
    alone = run.workload.concurrency == 1 or run.load_mode == "single"
    found = observed(run, "prefill_s") or (observed(run, "ttft_s") if alone else None)
    if found is None or setup.prefill_flops is None or found.value_s <= 0:
        return {}
    rate = setup.prefill_flops / found.value_s
    shares = {"prefill_flops_per_s": rate, "prefill_from_ttft": float(found.key == "ttft_s")}
    if setup.peak_flops_per_s is not None:
        shares["prefill_share_of_specified"] = rate / setup.peak_flops_per_s
    if setup.achieved_flops_per_s is not None:
        shares["prefill_share_of_achieved"] = rate / setup.achieved_flops_per_s
    return shares


def _links(setup: Setup, runs: Sequence[Run]) -> Seen:
    """All-reduces of a token, and what a step should take on more devices: the single one's divided, plus them."""
    if setup.all_reduce_s is None or setup.layers is None or setup.all_reduces_per_layer is None:
        return {}
    links = setup.all_reduce_s * setup.layers * setup.all_reduces_per_layer
    found = {"all_reduce_s_per_token": links}
    if axis_of(runs) == "tp":
        least, most = runs[0], runs[-1]
        a, b = times.step(least), times.step(most)
        if a is not None and b is not None:
            ratio = place(most, "tp") / place(least, "tp")
            found |= {"expected_step_most_s": a / ratio + links, "all_reduce_share": links / b}
    return found


def observe_pair(base: Subject, other: Subject, told: Seen | None = None) -> Observed:
    """What two deployments say together; entries of each side alone end in `_base` and `_other`."""
    pairs = matched(base.runs, other.runs)
    a, b = pairs[-1]
    sides = {"base": observe(base), "other": observe(other)}
    figures: dict[str, float] = {f"{name}_{side}": value for side, seen in sides.items() for name, value in seen.figures.items()}
    figures |= _noises(base, other)
    figures |= {**_phases(pairs), **_whole(a, b), **settings_changes(base.setup, other.setup, a, b)}
    figures |= {**_inside_first_token(a, b), **_clocks(a, b), **_against_load(pairs), **_bytes_ratio(figures)}
    figures |= {**_waits(other.setup, a, b, figures), **_bursts(pairs)}
    # What two deployments show at several loads is surer than what the rows of one load show.
    figures = {**within_runs(a, b), **figures}
    figures |= _themselves(figures)
    figures |= {**_jumps(figures), **_opening_waves(a, b), **_waiting(b, figures)}
    first_alone = figures.get("lone_ttft_change", figures.get("first_itself_change"))
    if first_alone is not None and figures.get("step_itself_change", -1.0) > -1:
        figures["first_over_step_factor"] = (1 + first_alone) / (1 + figures["step_itself_change"])
        # A first token holds what no device computes, so that a prompt token may have slowed by more than it shows.
        slowed = max(first_alone, figures.get("prefill_per_token_change", first_alone))
        figures["prompt_over_step_factor"] = (1 + slowed) / (1 + figures["step_itself_change"])
    phases = [figures[name] for name in ("ttft_change", "itl_change") if name in figures]
    if phases:
        figures["worse_phase_change"] = max(phases)
    if "ttft_change" in figures and figures.get("itl_change", -1.0) > -1:
        figures["ttft_over_itl_factor"] = (1 + figures["ttft_change"]) / (1 + figures["itl_change"])
    if "output_change" in figures:
        figures["output_length_moved"] = float(abs(figures["output_change"]) > LENGTH_TOLERANCE)
    if "prompt_change" in figures:
        figures["prompt_length_moved"] = float(abs(figures["prompt_change"]) > LENGTH_TOLERANCE)
    figures |= told or {}
    if "bytes_change" in figures and figures.get("bytes_change") and "itl_change" in figures:
        figures["measured_over_predicted"] = figures["itl_change"] / figures["bytes_change"]
    # What both sides carry is not why they differ; and of what the rows of both were measured for, a flag says less.
    flags = sides["base"].flags ^ sides["other"].flags
    if "decoding_base" in figures:
        flags -= MEASURED_IN_ROWS
    return Observed(finite(figures), _pair_levels(pairs), flags)


def _themselves(figures: Seen) -> dict[str, float]:
    """The prompt pass and the step, each without what the other does to it; the means stand in where a run has no rows that could tell."""
    found = {}
    if "decoding_base" not in figures:
        pairs = (("first_itself_change", "ttft_change"), ("step_itself_change", "itl_change"))
        found = {name: figures[mean] for name, mean in pairs if name not in figures and mean in figures}
    whole = next((figures[name] for name in ("total_change", "itl_change", "ttft_change") if name in figures), None)
    return found if whole is None else {**found, "request_change": whole}


def _opening_waves(a: Run, b: Run) -> dict[str, float]:
    """By how much the opening wave raises the mean first token more than it did before, as a share of the others' mean."""
    flags = [next((flag.figures for flag in run.flags if flag.flag == times.OPENING_WAVE), {}) for run in (a, b)]
    if not all("mean_rest_s" in found for found in flags[1:]):
        return {}
    raised = [found["mean_all_s"] - found["mean_rest_s"] if "mean_rest_s" in found else 0.0 for found in flags]
    return {"opening_wave_added_s": raised[1] - raised[0], "opening_wave_added_share": (raised[1] - raised[0]) / flags[1]["mean_rest_s"]}


def _jumps(figures: Seen) -> dict[str, float]:
    """Where the other side's step jumps over the batch and the base's does not, or by less; and devices against what they gained."""
    found: dict[str, float] = {}
    if "step_ratio_other" in figures and figures.get("step_at_graph_limit_other") != 0.0:
        # Where the limit is known to lie elsewhere, what jumps is a slope that is steep.
        found["step_jump_change"] = figures["step_ratio_other"] / figures.get("step_ratio_base", 1.0) - 1
    if figures.get("devices_change", 0.0) > 0 and figures.get("itl_change", -1.0) > -1:
        found["devices_gain_share"] = 1 / (1 + figures["itl_change"]) / (1 + figures["devices_change"])
    added = figures.get("step_itself_added_s", figures.get("itl_added_s"))
    if added is not None and figures.get("floor_added_s"):
        found["step_added_over_floor_added"] = added / figures["floor_added_s"]
    if "graph_limit_other" in figures and "decoding_most_other" in figures:
        found["beyond_graph_limit"] = figures["decoding_most_other"] - figures["graph_limit_other"]
    return found


def matched(base: Sequence[Run], other: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Runs of both sides at the same load, by rising load; a single run on each side is a pair whatever its load."""
    if len(base) == 1 and len(other) == 1:
        return [(base[0], other[0])]
    by_load = {run.workload.concurrency: run for run in other}
    found = [(run, by_load[run.workload.concurrency]) for run in base if run.workload.concurrency in by_load]
    return sorted(found, key=lambda pair: pair[0].workload.concurrency or 0) or [(base[-1], other[-1])]


def noises(phases: tuple[float, float]) -> Seen:
    """The changes of first token and step that do not count, by name; what is of both counts beyond the larger."""
    return {"noise": max(phases), "ttft_change_noise": phases[0], "itl_change_noise": phases[1]}


def _noises(base: Subject, other: Subject) -> Seen:
    """Of each phase 3 %, or twice the spread between three or more repeats where that is more."""
    repeated = [side.runs for side in (base, other) if axis_of(side.runs) is None]
    spreads = [[spread(runs, [of(run) for run in runs]) for runs in repeated] for of in (times.first_token, times.step)]
    first, step = (max([NOISE, *(SPREADS_PER_NOISE * value for value in found if value is not None)]) for found in spreads)
    return noises((first, step))


def _phases(pairs: Sequence[tuple[Run, Run]]) -> Seen:
    """Both phases at the highest load that has them; the rate of the prompt pass and the tail of the step where they are known."""
    a, b = pairs[-1]
    found = moved("ttft", times.first_tokens(a, b))
    step = next((known for pair in reversed(pairs) if (known := times.steps(*pair)) is not None), None)
    found |= moved("itl", step)
    for stat in ("p99", "p95"):
        tails = (times.stat_of(a, "itl_s", stat), times.stat_of(b, "itl_s", stat))
        if tails[0] and tails[1] is not None:
            found |= moved("itl_tail", (tails[0], tails[1]))
            break
    rates = times.prefill_rates(a, b)
    if rates is not None:
        found |= {"prefill_rate_base_per_s": rates[0], "prefill_rate_other_per_s": rates[1], **changed("prefill_rate", *rates)}
        if "ttft_change" not in found:
            # Without a prompt length there is no time, but the time of a prompt token moved by the inverse of the rate.
            found["ttft_change"] = rates[0] / rates[1] - 1
    return found


def _whole(a: Run, b: Run) -> Seen:
    """The whole request, split so that it adds up, and what the deployment completed."""
    found: dict[str, float] = {}
    parts = attribute(a, b)
    if parts is not None:
        found["total_added_s"] = parts.total_s
        if times.means_of(a, b, "ttft_s") is not None and times.means_of(a, b, "itl_s") is not None:
            # Of statistics that are no means, nothing adds up.
            found["remainder_s"] = parts.remainder_s
        if parts.base_total_s > 0 and parts.other_total_s > 0:
            found["total_change"] = parts.total_s / parts.base_total_s
            if "remainder_s" in found:
                found["remainder_share"] = abs(parts.remainder_s) / max(parts.base_total_s, parts.other_total_s)
    step, outputs = times.steps(a, b), (a.workload.output_tokens_mean, b.workload.output_tokens_mean)
    first = times.first_tokens(a, b)
    if step is not None and outputs[0] is not None and outputs[1] is not None:
        decode = (step[0] * max(outputs[0] - 1, 0.0), step[1] * max(outputs[1] - 1, 0.0))
        found["decode_added_s"] = decode[1] - decode[0]
        if first is not None and "total_added_s" not in found and first[0] + decode[0] > 0:
            found["total_added_s"] = first[1] - first[0] + decode[1] - decode[0]
            found["total_change"] = found["total_added_s"] / (first[0] + decode[0])
    for name, key in (("output_rate", "output_tokens_per_s"), ("request_rate", "requests_per_s")):
        found |= changed(name, times.rate_of(a, key), times.rate_of(b, key))
    found |= changed("prompt", a.workload.prompt_tokens_mean, b.workload.prompt_tokens_mean)
    found |= changed("output", a.workload.output_tokens_mean, b.workload.output_tokens_mean)
    for side, run in (("base", a), ("other", b)):
        if run.workload.concurrency:
            found[f"clients_{side}"] = float(run.workload.concurrency)
    found |= changed("clients", a.workload.concurrency, b.workload.concurrency)
    found |= changed("offered", a.workload.request_rate_per_s, b.workload.request_rate_per_s)
    if found.get("offered_change") and "request_rate_change" in found:
        found["answered_over_offered"] = (1 + found["request_rate_change"]) / (1 + found["offered_change"])
    return found


def _inside_first_token(a: Run, b: Run) -> Seen:
    """Which part of the first token's change lies in the queue, at the server, or outside it: ttft less the server's own.

    The parts are means of all requests, and so is the whole: where an opening wave has its mean TTFT withheld, what the flag says of all.
    Where there is no such mean, they are parts of the change that the server itself saw.
    """
    found: dict[str, float] = {}
    pairs = {name: times.pair_of(a, b, f"{name}_s") for name in ("queue", "server_ttft", "prefill", "client_send")}
    server, client = pairs["server_ttft"], _mean_first_tokens(a, b)
    whole = client or (server if times.pair_of(a, b, "ttft_s") is not None else None) or times.first_tokens(a, b)
    if whole is None or whole[0] == whole[1]:
        return found
    if server is not None and client is not None:
        pairs["outside_server"] = (client[0] - server[0], client[1] - server[1])
    elif client is None and whole is server:
        pairs["server_ttft"] = None
    for name, pair in pairs.items():
        if pair is not None:
            found |= moved(name, pair)
            found[f"{name}_share_of_change"] = (pair[1] - pair[0]) / (whole[1] - whole[0])
    inside = [found.get(f"{name}_share_of_change") for name in ("queue", "prefill")]
    at_server = found.get("server_ttft_share_of_change", 1.0 if whole is server else None)
    if inside[0] is not None and inside[1] is not None and at_server is not None:
        # What is at the server and in neither its queue nor its prompt pass stands before the engine.
        found["front_end_share_of_change"] = at_server - inside[0] - inside[1]
    idle = times.stat_of(a, "idle_before_s", "mean"), times.stat_of(b, "idle_before_s", "mean")
    if idle[0] is not None and idle[1] is not None:
        found["idle_added_s"] = idle[1] - idle[0]
    return found


def _mean_first_tokens(a: Run, b: Run) -> tuple[float, float] | None:
    """The mean TTFT of all requests on both sides, those of an opening wave among them; None where one side has none that may be used."""
    means = [
        next((flag.figures["mean_all_s"] for flag in run.flags if flag.flag == times.OPENING_WAVE and "mean_all_s" in flag.figures), None)
        or times.stat_of(run, "ttft_s", "mean")
        for run in (a, b)
    ]
    return None if means[0] is None or means[1] is None else (means[0], means[1])


def _clocks(a: Run, b: Run) -> Seen:
    found: dict[str, float] = {}
    for name, key in (("sm_clock", "sm_clock_hz"), ("memory_clock", "memory_clock_hz")):
        found |= changed(name, times.stat_of(a, key, "mean"), times.stat_of(b, key, "mean"))
    return found


def _against_load(pairs: Sequence[tuple[Run, Run]]) -> Seen:
    """The same change for a lone request and under load, for both phases, and what a step gained for each running sequence."""
    found: dict[str, float] = {}
    alone, loaded = pairs[0], pairs[-1]
    if len(pairs) < 2 and alone[0].workload.concurrency != 1:
        return found
    if alone[0].workload.concurrency == 1:
        for name, of in (("ttft", times.first_tokens), ("itl", times.steps)):
            low, high = of(*alone), of(*loaded)
            if low is None:
                continue
            found[f"alone_{name}_change"] = low[1] / low[0] - 1
            if high is not None and high[1] != high[0]:
                found[f"alone_over_loaded_{name}"] = found[f"alone_{name}_change"] / (high[1] / high[0] - 1)
    first, last = times.first_tokens(*alone), times.first_tokens(*loaded)
    if len(pairs) > 1 and first is not None and last is not None and first[1] > 0:
        found["ttft_growth_with_load"] = (last[1] / last[0]) / (first[1] / first[0])
        if first[1] != first[0]:
            found["added_ttft_ratio"] = (last[1] - last[0]) / (first[1] - first[0])
    return {**found, **_extra_per_sequence(pairs)}


def _extra_per_sequence(pairs: Sequence[tuple[Run, Run]]) -> Seen:
    """What a step gained at the lowest and the highest load, in all and for each running sequence."""
    found: dict[str, float] = {}
    extras = []
    for a, b in pairs:
        step, running = times.steps(a, b), a.workload.concurrency
        if step is not None and running:
            extras.append((float(running), (step[1] - step[0]) / running, step[1] - step[0]))
    if len(extras) > 1:
        low_extra, high_extra = extras[0], extras[-1]
        found |= {"extra_step_first_s": low_extra[2], "extra_step_last_s": high_extra[2], "extra_per_sequence_s": high_extra[1]}
        if low_extra[1] > 0:
            found["extra_per_sequence_ratio"] = high_extra[1] / low_extra[1]
        if low_extra[2] > 0:
            found["extra_per_step_ratio"] = high_extra[2] / low_extra[2]
    return found


def _bytes_ratio(figures: Seen) -> Seen:
    """How the floor moved, and with it what the bytes alone would make of the step."""
    found: dict[str, float] = {}
    floor = (figures.get("floor_s_base"), figures.get("floor_s_other"))
    read = (figures.get("step_bytes_base"), figures.get("step_bytes_other"))
    if read[0] and read[1] is not None:
        found["bytes_change"] = read[1] / read[0] - 1
    if floor[0] and floor[1] is not None:
        found |= {"floor_added_s": floor[1] - floor[0], "floor_change": floor[1] / floor[0] - 1}
        found["floor_saving_s"] = max(floor[0] - floor[1], 0.0)
        measured = figures.get("step_s_base"), figures.get("step_s_other")
        if measured[0] and measured[1] and not _tiers_unknown(figures):
            found["floor_ratio_over_measured"] = (floor[1] / floor[0]) / (measured[1] / measured[0])
    return found


def _tiers_unknown(figures: Seen) -> bool:
    """Whether a part of the weights lies in memory of unknown speed, so that no floor follows from their bytes."""
    return any(
        figures.get(f"fast_share_{side}", 1.0) < 1 and f"slow_bandwidth_bytes_per_s_{side}" not in figures for side in ("base", "other")
    )


def _waits(setup: Setup, a: Run, b: Run, figures: Seen) -> Seen:
    """A long prompt in the same server: the time of its own pass beside what the others waited more."""
    rate = times.rate_of(b, "prefill_tokens_per_s") or times.rate_of(a, "prefill_tokens_per_s")
    if setup.long_prompt_tokens is None or rate is None:
        return {}
    found = {"long_prefill_s": setup.long_prompt_tokens / rate}
    if b.workload.prompt_tokens_mean:
        found["own_prefill_s"] = b.workload.prompt_tokens_mean / rate
    if "ttft_added_s" in figures:
        found["wait_over_long_prefill"] = figures["ttft_added_s"] / found["long_prefill_s"]
    return found


def _waiting(run: Run, figures: Seen) -> Seen:
    """Where prompts are read in more chunks than before: how much of the added first token no prompt's own passes can be.

    A prompt of c chunks runs in c passes, after the one that it meets, and a pass with a prompt in it is seen by those who decode, as a gap
    that is longer than a step; `run` is the slower side. At least this share is waiting: nothing is taken off for the base's queue.
    """
    held, added = times.stat_of(run, "stall_s", "p95"), figures.get("ttft_added_s", 0.0)
    if held is None or added <= 0 or figures.get("chunks_added", 0.0) <= 0 or figures.get("clients_other", 0.0) <= 1:
        return {}
    return {"waiting_share_of_change": 1 - (figures["chunks_other"] + 1) * held / added}


def _bursts(pairs: Sequence[tuple[Run, Run]]) -> Seen:
    """Prompt tokens a second that a burst drains at (all its prompts by its last first token), beside a lone request's own rate."""
    found: dict[str, float] = {}
    for name, index in (("base", 0), ("other", 1)):
        alone, loaded = pairs[0][index], pairs[-1][index]
        size, prompt, last = loaded.workload.concurrency, loaded.workload.prompt_tokens_mean, times.stat_of(loaded, "ttft_s", "max")
        if size and size > 1 and prompt and last:
            found[f"burst_drain_{name}_per_s"] = size * prompt / last
        first = times.first_token(alone)
        if alone.workload.concurrency == 1 and alone.workload.prompt_tokens_mean and first:
            found[f"alone_prefill_{name}_per_s"] = alone.workload.prompt_tokens_mean / first
    found |= changed("burst_drain", found.get("burst_drain_base_per_s"), found.get("burst_drain_other_per_s"))
    if "burst_drain_other_per_s" in found and "alone_prefill_other_per_s" in found:
        found["burst_drain_over_alone"] = found["burst_drain_other_per_s"] / found["alone_prefill_other_per_s"]
    if "burst_drain_change" in found:
        found["burst_drain_ratio"] = found["burst_drain_change"] + 1
    return found


def _pair_levels(pairs: Sequence[tuple[Run, Run]]) -> tuple[Level, ...]:
    """Both phases at every load that both sides have."""
    levels = []
    for a, b in pairs:
        figures = {**moved("ttft", times.first_tokens(a, b)), **moved("itl", times.steps(a, b))}
        running = a.workload.concurrency
        figures |= {f"{name}_ratio": 1 + figures[f"{name}_change"] for name in ("ttft", "itl") if f"{name}_change" in figures}
        if running and "itl_added_s" in figures:
            figures["extra_per_sequence_s"] = figures["itl_added_s"] / running
        levels.append(Level("concurrency", float(running or 0), figures))
    return tuple(levels) if len(levels) > 1 else ()
