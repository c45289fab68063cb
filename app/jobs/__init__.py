"""The kinds of measurement jobs: what each asks for and what it will cost, known to the server's forms and to the worker alike.

A kind is one file here (parameters and estimate) and one in `worker/measure/` (the measuring itself).
"""

from app.jobs.device_microbench import DeviceMicrobench
from app.jobs.endpoint_sweep import EndpointSweep
from app.jobs.inprocess_sweep import InprocessSweep
from app.jobs.kind import DeviceFacts, Estimate, JobParameters, read_parameters
from app.jobs.llama_bench import LlamaBench

KINDS: dict[str, type[JobParameters]] = {
    "device_microbench": DeviceMicrobench,
    "inprocess_sweep": InprocessSweep,
    "endpoint_sweep": EndpointSweep,
    "llama_bench": LlamaBench,
}

__all__ = ["KINDS", "DeviceFacts", "Estimate", "JobParameters", "read_parameters"]
