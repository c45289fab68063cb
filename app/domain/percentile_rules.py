"""By which rule a percentile was taken: ours from samples, or a tool's own.

Ours is linear interpolation between closest ranks (numpy's default) over the requests that succeeded. On few samples the rules differ by
as much as one sample does, so percentiles of different rules are not set against each other without a word.
"""

from collections.abc import Mapping

from app.domain.run import Distribution, Run

LINEAR = "linear between closest ranks"
NEAREST_RANK = "nearest rank"
STEPS = "steps of the cumulative distribution"

# Tools whose own percentiles follow another rule than ours, by format.
OF_TOOLS: Mapping[str, str] = {"trtllm_bench": NEAREST_RANK, "guidellm": STEPS, "mlperf_loadgen": NEAREST_RANK}


def percentile_rule(run: Run, distribution: Distribution) -> str:
    """The rule behind the percentiles of one of the run's distributions."""
    if distribution.origin == "samples":
        return LINEAR
    return OF_TOOLS.get(run.format, LINEAR)
