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
ROLE_ONLY_TOKENS = 4
ROLE_ONLY_RATIO = 5.0


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
            f"A gap between chunks, {duration(gap.mean)} on average, covers {per_chunk:.3g} tokens, {duration(gap.mean / per_chunk)} each: "
            "it is not an inter-token latency.",
            (),
            {"chunk_gap_s": gap.mean, "tokens_per_chunk": per_chunk, "gap_per_token_s": gap.mean / per_chunk},
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
        text = f"{per_chunk:.3g} tokens a chunk: percentiles of the gap between tokens cannot be known."
        return Flag("chunk_tokens_gt_1", text, (), {"tokens_per_chunk": per_chunk, "chunks_per_token": 1 / per_chunk})
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
    served, counted = _served_tokens(run), evidence.retokenized_output_tokens
    if not served or counted is None or abs(counted / served - 1) <= COUNTS_DIFFER:
        return None
    text = f"The server counts {served} output tokens, the client's tokenizer {counted}; the server's count is used."
    figures = {"served_tokens": served, "counted_tokens": counted, "count_ratio": counted / served}
    itl, completed = run.distribution("itl_s"), run.requests.completed
    if itl is not None and itl.mean and completed and counted > completed:
        # The same decode time over the client's number of gaps.
        figures["wrong_itl_s"] = itl.mean * (served - completed) / (counted - completed)
        text += f" By the client's count ITL would be {duration(figures['wrong_itl_s'])} instead of {duration(itl.mean)}."
    return Flag("tokenizer_mismatch", text, (), figures)


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
        (),
        {"unexplained_share": unexplained},
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
        {"ttft_share": share},
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


def _served_tokens(run: Run) -> int | None:
    """All output tokens by the server's count, from the file's total or from its requests."""
    if run.workload.output_tokens_total is not None or run.samples is None:
        return run.workload.output_tokens_total
    total = float(run.samples.output_tokens[run.samples.ok].sum())
    return round(total) if np.isfinite(total) else None


def reasoning_before_content(run: Run, evidence: Evidence) -> Flag | None:
    """The model thinks before it answers: the first token and the first that a reader sees are two moments."""
    empty = evidence.answers_without_content
    words = f"{empty} requests have tokens and no visible answer: all of it was thought." if empty else ""
    samples = run.samples
    if samples is None or samples.ttft_answer_s is None:
        return Flag("reasoning_before_content", words, (), {"answers_without_content": empty}) if words else None
    known = samples.ok & np.isfinite(samples.ttft_s) & np.isfinite(samples.ttft_answer_s)
    later = known & (samples.ttft_answer_s > samples.ttft_s + COALESCED_GAP_S)
    if not later.any():
        return Flag("reasoning_before_content", words, (), {"answers_without_content": empty}) if words else None
    first, answer = float(samples.ttft_s[later].mean()), float(samples.ttft_answer_s[later].mean())
    figures: dict[str, float] = {"requests": int(later.sum()), "ttft_s": first, "ttft_answer_s": answer}
    visible_s = float((samples.e2e_s - samples.ttft_answer_s)[later].sum())
    tokens = float((samples.output_tokens[later] - 1).sum())
    if visible_s > 0 and tokens > 0:
        figures["wrong_decode_tokens_per_s"] = tokens / visible_s
    text = (
        f"{int(later.sum())} of {int(known.sum())} requests think first: the first token comes after {duration(first)}, the first visible "
        f"one after {duration(answer)}. TTFT ends at the first of any kind, and ITL is over all of them."
    )
    return Flag("reasoning_before_content", f"{text} {words}".strip(), (), figures)


def first_chunk_role_only(run: Run, evidence: Evidence) -> Flag | None:
    """The first chunk carried no token: what was timed as TTFT is the answer's opening, and the prompt pass hides in the first gap."""
    withholds = ("ttft_s", "ttft_per_prompt_token_s", "prefill_tokens_per_s", *DECODE_METRICS)
    if evidence.role_only_chunks:
        text = f"TTFT of {evidence.role_only_chunks} requests ends at a chunk that only names the role and carries no token."
        return Flag("first_chunk_role_only", text, withholds, {"requests": evidence.role_only_chunks})
    samples = run.samples
    if samples is None or samples.chunk_gap_counts.size != samples.size or not samples.chunk_gaps_s.size:
        return None
    # As many gaps as tokens: one chunk more than there are tokens to carry.
    counts = samples.chunk_gap_counts
    one_more = samples.ok & (counts >= ROLE_ONLY_TOKENS) & (counts == samples.output_tokens)
    if not one_more.any():
        return None
    firsts = samples.chunk_gaps_s[(np.cumsum(counts) - counts)[one_more]]
    usual = float(np.median(samples.chunk_gaps_s))
    odd = int((firsts > ROLE_ONLY_RATIO * usual).sum())
    if odd * 2 < int(samples.ok.sum()):
        return None
    text = (
        f"In {odd} of {int(samples.ok.sum())} requests the first gap, {duration(float(np.median(firsts)))}, is many times the usual "
        f"{duration(usual)}, and there is a chunk more than tokens: the first chunk only names the role, and the prompt pass is after it."
    )
    return Flag("first_chunk_role_only", text, withholds, {"requests": odd, "first_gap_s": float(np.median(firsts)), "usual_gap_s": usual})


def non_streaming_no_phase_split(run: Run, evidence: Evidence) -> Flag | None:
    """Answers that came in one piece have no first token of their own: only the whole request is known."""
    if evidence.streamed is not False:
        return None
    text = "Streaming was off, so no phase was measured: only the whole request is known. Measure again with streaming on to split it."
    return Flag("non_streaming_no_phase_split", text, ("ttft_s", "ttft_per_prompt_token_s", "prefill_tokens_per_s", *DECODE_METRICS))


def prefix_cache_hits(run: Run, evidence: Evidence) -> Flag | None:
    """Part of the prompts was not computed but found in the server's cache: TTFT is that of shorter prompts."""
    cached, total = evidence.cached_prompt_tokens, run.workload.prompt_tokens_total
    if cached is None and run.samples is not None and run.samples.cached_tokens is not None:
        known = run.samples.ok & np.isfinite(run.samples.cached_tokens)
        cached = int(run.samples.cached_tokens[known].sum())
        total = int(np.nansum(run.samples.prompt_tokens[known])) or None
    if not cached:
        return None
    share = f" ({percent(cached / total)} of the prompts)" if total else ""
    text = f"{cached} prompt tokens{share} were found in the server's cache: TTFT is that of the rest and says little about prefill."
    figures = {"cached_tokens": cached, **({"cached_share": cached / total} if total else {})}
    return Flag("prefix_cache_hits", text, ("prefill_tokens_per_s",), figures)
