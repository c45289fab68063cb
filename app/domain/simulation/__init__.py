"""The step simulator: a served load on the pass model, pass by pass, for closed and open loops.

load      what is sent: clients, a rate or a trace; lengths; the seed
tables    the passes it can need, priced once by the functions of a prediction
kernel    one engine's loop over them, plain Python or compiled by numba (`forms`)
fleet     the same for pools of prefill and decode, attention ranks in lock-step and pipeline stages (`deployment`)
results   TTFT in its parts, percentiles, throughput, goodput
run       the three together
"""

from app.domain.simulation.forms import can_compile, is_ready
from app.domain.simulation.load import MOST_TOKENS, ServedLoad
from app.domain.simulation.results import Crossing, Goodput, Simulation, Target, Timeline
from app.domain.simulation.run import Simulator

__all__ = ["MOST_TOKENS", "Crossing", "Goodput", "ServedLoad", "Simulation", "Simulator", "Target", "Timeline", "can_compile", "is_ready"]
