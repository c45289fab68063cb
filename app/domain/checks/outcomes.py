"""How the requests of a run ended: none completed, some failed, some stayed empty, some were too short."""

import numpy as np

from app.domain.checks.evidence import ALL_METRICS, DECODE_METRICS, Evidence
from app.domain.readings import requests_without_tpot
from app.domain.run import Flag, Floats, Run
from app.domain.text import duration, percent

LENGTHS_DIFFER = 0.02


def zero_completed(run: Run, evidence: Evidence) -> Flag | None:
    """No request succeeded: every latency in the file is a placeholder."""
    if run.requests.completed != 0:
        return None
    sent = run.requests.sent if run.requests.sent is not None else run.requests.failed
    of = f" of {sent}" if sent else ""
    return Flag("zero_completed", f"0{of} requests completed: every latency and rate in the file is a placeholder.", ALL_METRICS)


def failures_excluded(run: Run, evidence: Evidence) -> Flag | None:
    """Some requests failed and are in no latency; with samples, the median that counts them as infinitely slow is given."""
    failed, completed = run.requests.failed, run.requests.completed
    if failed is None or not completed or failed <= evidence.empty_outputs:
        return None
    failed -= evidence.empty_outputs  # those have a flag of their own
    attempted = failed + completed
    text = f"{failed} of {attempted} requests ({percent(failed / attempted)}) failed and are in no latency."
    figures: dict[str, float] = {"failed": failed, "attempted": attempted, "failed_share": failed / attempted}
    if run.samples is not None:
        ttft_s = run.samples.ttft_s[run.samples.ok & np.isfinite(run.samples.ttft_s)]
        text += _adjusted_words(ttft_s, attempted)
        for level in (50, 90, 99):
            if (adjusted := percentile_of_all(ttft_s, level, attempted)) is not None:
                figures[f"ttft_adjusted_p{level}_s"] = adjusted
    return Flag("failures_excluded", text, (), figures)


def percentile_of_all(answered_s: Floats, level: float, attempted: int) -> float | None:
    """The percentile over all `attempted` requests, those without an answer taken as infinitely slow; None where it would be infinite.

    Linear between closest ranks, as for any other percentile.
    """
    position = (attempted - 1) * level / 100
    if answered_s.size == 0 or position > answered_s.size - 1:
        return None
    return float(np.interp(position, np.arange(answered_s.size), np.sort(answered_s)))


def _adjusted_words(answered_s: Floats, attempted: int) -> str:
    if answered_s.size == 0:
        return ""
    adjusted = percentile_of_all(answered_s, 50, attempted)
    if adjusted is None:
        return " Counted as never answered, the median TTFT would not exist."
    plain = duration(float(np.median(answered_s)))
    return f" Counted as never answered, the median TTFT would be {duration(adjusted)} instead of {plain}."


def empty_outputs(run: Run, evidence: Evidence) -> Flag | None:
    """Requests that ended without an error and without a token."""
    if evidence.empty_outputs:
        total = run.requests.sent or evidence.empty_outputs + (run.requests.completed or 0)
        text = f"{evidence.empty_outputs} of {total} requests produced no token; they are left out of every latency."
        wrong = {f"wrong_{wrong_name(key)}": value for key, value in evidence.contradicted.items()}
        return Flag("empty_outputs", text, (), {"requests": evidence.empty_outputs, **wrong})
    if run.workload.output_tokens_total == 0 and run.measured_at == "client":
        return Flag("empty_outputs", f"{run.requests.completed} requests completed and none produced a token.", DECODE_METRICS)
    return None


def wrong_name(statistic: str) -> str:
    """A statistic's name with the unit last: ttft_s.mean -> ttft_mean_s."""
    key, _, stat = statistic.partition(".")
    return f"{key.removesuffix('_s')}_{stat}_s" if key.endswith("_s") else f"{key}_{stat}"


def tpot_undefined_single_token(run: Run, evidence: Evidence) -> Flag | None:
    """Requests with one output token have no time between tokens."""
    if run.samples is not None:
        single = int((run.samples.ok & (run.samples.output_tokens == 1)).sum())
        answered = int(run.samples.ok.sum())
        if single:
            withholds = DECODE_METRICS if single == answered else ()
            text = f"{single} of {answered} requests have a single output token and no TPOT or ITL."
            figures = {"requests": single, "requests_without_tpot": requests_without_tpot(run.samples)}
            return Flag("tpot_undefined_single_token", text, withholds, figures)
        return None
    completed, tokens = run.requests.completed, run.workload.output_tokens_total
    if completed and tokens == completed:
        return Flag("tpot_undefined_single_token", "Every request has a single output token: there is no TPOT or ITL.", DECODE_METRICS)
    return None


def short_outputs_eos(run: Run, evidence: Evidence) -> Flag | None:
    """Answers shorter than asked for: the model stopped by itself, so totals are not those of the requested length."""
    asked, got = evidence.requested_output_tokens, run.workload.output_tokens_mean
    if not asked or got is None or got >= asked * (1 - LENGTHS_DIFFER):
        return None
    text = f"{asked:g} output tokens were asked for, {got:.5g} came on average: answers ended early."
    return Flag("short_outputs_eos", text, (), {"asked": asked, "came": got, "excess": got / asked - 1})


def input_length_mismatch(run: Run, evidence: Evidence) -> Flag | None:
    """Prompts longer or shorter than asked for: a chat template, or another tokenizer."""
    asked, got = evidence.requested_prompt_tokens, run.workload.prompt_tokens_mean
    if not asked or got is None or abs(got / asked - 1) <= LENGTHS_DIFFER:
        return None
    text = f"{asked:g} prompt tokens were asked for, {got:.5g} were counted on average; the counted ones are used."
    return Flag("input_length_mismatch", text, (), {"asked": asked, "counted": got, "excess": got / asked - 1})
