"""`python -m app.worker.measure KIND FOLDER`: one job in this process, told by its folder."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from app.domain.errors import PhaselineError
from app.jobs import KINDS
from app.worker.measure import device_microbench, endpoint_sweep, inprocess_sweep, llama_bench
from app.worker.measure.job import DEVICE_LOST, DONE, FAILED, REFUSED, DeviceLost, Failed, Job, StartAgain, read_job
from app.worker.measure.reporter import Reporter
from app.worker.measure.threads import pinned_environment

RUNNERS: Mapping[str, Callable[[Job, Reporter], None]] = {
    "device_microbench": device_microbench.run,
    "inprocess_sweep": inprocess_sweep.run,
    "endpoint_sweep": endpoint_sweep.run,
    "llama_bench": llama_bench.run,
}
RESUMES = "PHASELINE_MEASURE_RESUMES"
USAGE = f"usage: python -m app.worker.measure {{{','.join(KINDS)}}} FOLDER"


def main(arguments: Sequence[str]) -> int:
    """Run the job and say with the exit code how it ended."""
    if len(arguments) != 2:
        sys.stderr.write(f"{USAGE}\n")
        return REFUSED
    kind, folder = arguments[0], Path(arguments[1])
    reporter = Reporter(sys.stdout)
    try:
        job = read_job(kind, folder)
        if job.device.is_cpu and (environment := pinned_environment(getattr(job.parameters, "threads", None), os.environ)) is not None:
            # Libraries of arithmetic read their thread counts once, when they are loaded: start again with these.
            _start_again(arguments, environment)
        RUNNERS[kind](replace(job, resumes=RESUMES in os.environ), reporter)
    except StartAgain as again:
        reporter.log(str(again), "warning")
        _start_again(arguments, {**os.environ, RESUMES: "1"})
    except DeviceLost as lost:
        reporter.log(str(lost), "error")
        return DEVICE_LOST
    except Failed as failure:
        reporter.log(str(failure), "error")
        return FAILED
    except PhaselineError as refusal:
        reporter.log(str(refusal), "error")
        return REFUSED
    except MemoryError:
        reporter.log("This process ran out of memory: measure a smaller model, batch or prompt.", "error")
        return FAILED
    return DONE


def _start_again(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """This process anew, under the same number and in the same group."""
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", "app.worker.measure", *arguments], dict(environment))  # noqa: S606


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
