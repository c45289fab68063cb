"""What the stream of an answer shows: chunks that are no tokens, a path that holds them back, counts that differ between its ends."""

import numpy as np

from app.domain.checks.evidence import DECODE_METRICS, Evidence
from app.domain.derive import tokens_per_chunk
from app.domain.run import CANONICAL, Flag, RequestSamples, Run
from app.domain.text import duration, percent

TOKENS_PER_CHUNK = 1.05
COUNTS_DIFFER = 0.02
BUFFERED_SHARE = 0.95
BUFFERED_TOKENS = 8
QUEUED_SPREAD = 0.4
QUEUED_SHARE = 0.8
UNEXPLAINED_SHARE = 0.03
COALESCED_GAP_S = 1e-3
COALESCED_SHARE = 0.3


def itl_is_per_chunk(run: Run, evidence: Evidence) -> Flag | None:
    """What the tool calls ITL is a gap between chunks, and chunks are not tokens here."""
    gap = run.distribution("chunk_gap_s")
    per_chunk = chunk_tokens(run, evidence)
    if gap is None or gap.mean is None or gap.definition != CANONICAL:
        return None
    if per_chunk is not None:
        if per_chunk <= TOKENS_PER_CHUNK:
            return None
        return Flag(
            "itl_is_per_chunk",
            f"A gap between chunks, {duration(gap.mean)} on average, covers {per_chunk:.3g} tokens: it is not an inter-token latency.",
        )
    tpot = run.distribution("tpot_s")
    if tpot is None or not tpot.mean or gap.mean <= tpot.mean * TOKENS_PER_CHUNK:
        return None
    return Flag(
        "itl_is_per_chunk",
        f"The mean gap between chunks, {duration(gap.mean)}, is {gap.mean / tpot.mean:.3g} times the mean TPOT, "
        f"{duration(tpot.mean)}: chunks carry more than one token, or long answers ran slower; the file does not tell which.",
    )


def chunk_tokens_gt_1(run: Run, evidence: Evidence) -> Flag | None:
    """Chunks carry more than one token, or tokens arrive in bursts of under a millisecond."""
    per_chunk = chunk_tokens(run, evidence)
    if per_chunk is not None and per_chunk > TOKENS_PER_CHUNK:
        return Flag("chunk_tokens_gt_1", f"{per_chunk:.3g} tokens a chunk: percentiles of the gap between tokens cannot be known.")
    gaps = np.empty(0) if run.samples is None else run.samples.chunk_gaps_s
    if gaps.size == 0 or float(gaps.mean()) < 5 * COALESCED_GAP_S:
        return None
    share = float((gaps < COALESCED_GAP_S).mean())
    if share < COALESCED_SHARE:
        return None
    return Flag(
        "chunk_tokens_gt_1",
        f"{percent(share)} of the gaps are under 1 ms, the mean is {duration(float(gaps.mean()))}: tokens arrive in bursts.",
    )


def chunk_tokens(run: Run, evidence: Evidence) -> float | None:
    observed = None if run.samples is None else tokens_per_chunk(run.samples)
    return observed if observed is not None else evidence.tokens_per_chunk


def tokenizer_mismatch(run: Run, evidence: Evidence) -> Flag | None:
    """The client's count of output tokens is not the server's."""
    served, counted = run.workload.output_tokens_total, evidence.retokenized_output_tokens
    if not served or counted is None or abs(counted / served - 1) <= COUNTS_DIFFER:
        return None
    text = f"The server counts {served} output tokens, the client's tokenizer {counted}; the server's count is used."
    return Flag("tokenizer_mismatch", text)


def transport_buffering(run: Run, evidence: Evidence) -> Flag | None:
    """Part of a request's time is neither before its first token nor between its chunks."""
    samples = run.samples
    if samples is None or samples.chunk_gap_counts.size != samples.size or not samples.chunk_gaps_s.size:
        return None
    owner = np.repeat(np.arange(samples.size), samples.chunk_gap_counts)
    between = np.bincount(owner, weights=samples.chunk_gaps_s, minlength=samples.size)
    counted = samples.ok & (samples.chunk_gap_counts > 0) & np.isfinite(samples.e2e_s) & np.isfinite(samples.ttft_s)
    total = float(samples.e2e_s[counted].sum())
    if total <= 0:
        return None
    unexplained = float((samples.e2e_s - samples.ttft_s - between)[counted].sum()) / total
    if unexplained <= UNEXPLAINED_SHARE:
        return None
    return Flag(
        "transport_buffering",
        f"{percent(unexplained)} of the request time is neither TTFT nor a gap between chunks: "
        "something between server and client holds it back.",
    )


def ttft_equals_e2e_buffering(run: Run, evidence: Evidence) -> Flag | None:
    """The whole answer arrives with its first token: a buffer in the path, unless a queue explains the wait."""
    share = _buffered_share(run.samples) if run.samples is not None else _buffered_share_of_means(run)
    if share is None:
        return None
    return Flag(
        "ttft_equals_e2e_buffering",
        f"TTFT is {percent(share)} of the whole request: the answer arrives at once, held back by a proxy or sent unstreamed.",
        (*DECODE_METRICS, "prefill_tokens_per_s"),
    )


def _buffered_share(samples: RequestSamples) -> float | None:
    known = samples.ok & (samples.output_tokens > BUFFERED_TOKENS) & (samples.e2e_s > 0) & np.isfinite(samples.ttft_s)
    if not known.any():
        return None
    shares = samples.ttft_s[known] / samples.e2e_s[known]
    # In a queue the first requests are answered soon; through a buffer none is, but for the odd one.
    typical, soonest = (float(share) for share in np.percentile(shares, (50, 2)))
    return typical if typical > BUFFERED_SHARE and soonest > QUEUED_SHARE else None


def _buffered_share_of_means(run: Run) -> float | None:
    ttft, e2e, tokens = run.distribution("ttft_s"), run.distribution("e2e_s"), run.workload.output_tokens_mean
    if ttft is None or e2e is None or not ttft.mean or not e2e.mean or tokens is None or tokens <= BUFFERED_TOKENS:
        return None
    queued = ttft.std is not None and ttft.std > QUEUED_SPREAD * ttft.mean
    share = ttft.mean / e2e.mean
    return share if share > BUFFERED_SHARE and not queued else None
