"""`python -m app.worker.measure KIND FOLDER`: one job in this process, told by its folder."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from app.domain.errors import PhaselineError
from app.jobs import KINDS
from app.worker.measure import device_microbench
from app.worker.measure.job import DEVICE_LOST, DONE, FAILED, REFUSED, DeviceLost, Job, Refused, read_job
from app.worker.measure.reporter import Reporter
from app.worker.measure.threads import pinned_environment

RUNNERS: Mapping[str, Callable[[Job, Reporter], None]] = {
    "device_microbench": device_microbench.run,
}
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
            os.execve(sys.executable, [sys.executable, "-m", "app.worker.measure", *arguments], dict(environment))  # noqa: S606
        if kind not in RUNNERS:
            raise Refused(f"This version of the worker cannot run {kind}: update it.")
        RUNNERS[kind](job, reporter)
    except DeviceLost as lost:
        reporter.log(str(lost), "error")
        return DEVICE_LOST
    except PhaselineError as refusal:
        reporter.log(str(refusal), "error")
        return REFUSED
    except MemoryError:
        reporter.log("This process ran out of memory: measure a smaller model, batch or prompt.", "error")
        return FAILED
    return DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
