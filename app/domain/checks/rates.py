"""Rates that are read wrongly: a peak counted in chunks, prompts among the output, the server's pace taken for one user's."""

from app.domain.checks.evidence import Evidence
from app.domain.readings import load_reading
from app.domain.run import Flag, Run
from app.domain.text import duration

TOKENS_PER_CHUNK = 1.05
RATES_DIFFER = 0.02
PROMPT_HEAVY = 2.0
SEVERAL_IN_FLIGHT = 2.0


def impossible_peak_below_mean(run: Run, evidence: Evidence) -> Flag | None:
    """A peak rate below the mean rate was counted in chunks, or over seconds that the run did not fill."""
    peak, mean = evidence.peak_output_tokens_per_s, run.rate("output_tokens_per_s")
    if peak is None or mean is None or peak >= mean.value * 0.99:
        return None
    text = (
        f"The file's peak output rate, {peak:.4g} per second, is below its mean of {mean.value:.4g} tokens/s: "
        "it counts chunks in whole seconds"
    )
    figures: dict[str, float] = {"wrong_peak_per_s": peak, "mean_per_s": mean.value}
    per_chunk = evidence.tokens_per_chunk
    if per_chunk is not None and per_chunk > TOKENS_PER_CHUNK:
        text += f"; times {per_chunk:.3g} tokens a chunk it is {peak * per_chunk:.4g} tokens/s"
        figures["peak_times_chunk_per_s"] = peak * per_chunk
    return Flag("impossible_peak_below_mean", text + ".", (), figures)


def throughput_includes_prompt(run: Run, evidence: Evidence) -> Flag | None:
    """A throughput that counts prompt tokens: the headline one by design, or an output throughput that is the total in truth."""
    output, total = run.rate("output_tokens_per_s"), run.rate("total_tokens_per_s")
    if output is None or total is None or not output.value or total.value < output.value * PROMPT_HEAVY:
        return None
    figures = {"total_tokens_per_s": total.value, "output_tokens_per_s": output.value}
    reported = evidence.reported_output_tokens_per_s
    if reported is not None and abs(reported / total.value - 1) <= RATES_DIFFER:
        text = f"The file's output throughput, {reported:.4g} tokens/s, counts prompts: {output.value:.4g} of them per second are output."
        return Flag("throughput_includes_prompt", text, (), {**figures, "wrong_output_tokens_per_s": reported})
    text = (
        f"Total throughput, {total.value:.4g} tokens/s, counts prompt tokens; {output.value:.4g} of them are output. "
        "Compare each with its like only."
    )
    return Flag("throughput_includes_prompt", text, (), figures)


def aggregate_vs_per_user(run: Run, evidence: Evidence) -> Flag | None:
    """The server's rate and one request's differ by the number in flight, so neither says what the other does."""
    reading = load_reading(run)
    ratio, server_s, user_s = reading.user_over_server, reading.server_s_per_token, reading.user_s_per_token
    if ratio is None or server_s is None or user_s is None or ratio < SEVERAL_IN_FLIGHT or run.load_mode == "single":
        return None
    return Flag(
        "aggregate_vs_per_user",
        f"The server gives a token every {duration(server_s)}, one request gets one every {duration(user_s)}: {ratio:.3g} times as "
        f"long, as about {ratio:.3g} are decoding at once. 1 / throughput is nobody's latency.",
        (),
        {"server_s_per_token": server_s, "user_s_per_token": user_s, "user_over_server": ratio},
    )


def per_role_gpu_denominator(run: Run, evidence: Evidence) -> Flag | None:
    """A deployment split by role: a rate per device is over the devices of one role or of all, and the two are far apart."""
    roles = evidence.role_devices
    rate = run.rate("output_tokens_per_s")
    if len(roles) < 2 or not all(roles.values()):
        return None
    together = sum(roles.values())
    parts = ", ".join(f"{count} for {role}" for role, count in roles.items())
    text = f"{together} devices are split by role: {parts}. A rate per device must say over which."
    figures: dict[str, float] = {f"devices_{role}": count for role, count in roles.items()}
    if rate is not None and rate.scope == "aggregate":
        figures["output_tokens_per_s_per_device"] = rate.value / together
        each = "; ".join(f"over those for {role} {rate.value / count:.4g}" for role, count in roles.items())
        text += f" Output per device over all is {rate.value / together:.4g} tokens/s, {each}."
    return Flag("per_role_gpu_denominator", text, (), figures)
