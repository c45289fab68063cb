"""One request as an engine that answers alone times it: its prompt pass and its generation, on the server's own clock.

llama-server and ollama divide the time of generation by all output tokens, although the first came with the prompt pass: their figure
keeps a definition of its own. llama-cli counts the passes (`runs`), which makes its figure the ITL itself.
"""

from dataclasses import dataclass, replace

from app.domain.derive import with_request_rates
from app.domain.run import Distribution, Flag, MetricValue, RequestCounts, Run, Workload
from app.formats.serving import SERVER_USAGE

WITH_FIRST = "generation time / output tokens, the first included"
PROMPT_CACHED = "The server had this prompt in its cache: there is no prompt pass in the file, so no prefill."


@dataclass(frozen=True)
class ServerTiming:
    """Times in seconds, None where not known. `prompt_tokens` are those of the prompt pass, `cached_tokens` those it found done.

    `total_s` is the request without the loading of the model; the sum of both phases stands in for it. `passes` is the number of
    decode passes where the tool counts those, None where it counts tokens alone.
    """

    prompt_tokens: int | None
    prompt_s: float | None
    output_tokens: int | None
    decode_s: float | None
    cached_tokens: int | None = None
    passes: int | None = None
    total_s: float | None = None


def timed(run: Run, timing: ServerTiming) -> Run:
    """The run with what the timing gives: `prefill_s`, `itl_s`, `e2e_s` and the rates that follow. No metric when there is no time."""
    metrics: dict[str, MetricValue] = {}
    if timing.prompt_s is not None and timing.prompt_tokens:
        metrics["prefill_s"] = Distribution(mean=timing.prompt_s, n=1)
    if (itl := _itl(timing)) is not None:
        metrics["itl_s"] = itl
    total = timing.total_s
    if total is None and timing.prompt_s is not None and timing.decode_s is not None:
        total = timing.prompt_s + timing.decode_s
    if total is not None and metrics:
        metrics["e2e_s"] = Distribution(mean=total, n=1, origin="derived")
    if metrics and timing.cached_tokens is not None and timing.prompt_tokens:
        metrics["cached_prompt_tokens"] = Distribution(mean=float(timing.cached_tokens), n=1)
    output = timing.output_tokens or None
    workload = Workload(
        prompt_tokens_mean=float(timing.prompt_tokens) if timing.prompt_tokens else None,
        output_tokens_mean=float(output) if output else None,
        prompt_tokens_total=timing.prompt_tokens or None,
        output_tokens_total=output,
        context_depth_tokens=timing.cached_tokens or 0,
    )
    done = replace(run, workload=workload, requests=RequestCounts(completed=1), metrics=metrics, token_count_source=SERVER_USAGE)
    return with_request_rates(done)


def _itl(timing: ServerTiming) -> Distribution | None:
    if not timing.decode_s or not timing.output_tokens or timing.output_tokens < 2:
        return None
    if timing.passes is not None:
        return Distribution(mean=timing.decode_s / timing.passes, n=timing.passes, origin="derived")
    return Distribution(mean=timing.decode_s / timing.output_tokens, n=timing.output_tokens, origin="derived", definition=WITH_FIRST)


def cache_flag(timing: ServerTiming) -> Flag | None:
    """Said when part of the prompt, or all of it, was not computed again."""
    if timing.cached_tokens:
        return Flag(
            "prefix_cache_hits",
            f"{timing.cached_tokens} prompt tokens were in the cache; the prompt pass is that of the other {timing.prompt_tokens or 0}.",
        )
    if not timing.prompt_tokens and timing.decode_s is not None:
        return Flag("prefix_cache_hits", PROMPT_CACHED, ("prefill_s", "prefill_tokens_per_s"))
    return None
