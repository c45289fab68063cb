"""The bounds that a diagnosis judges by, each once, with what it is for. Source: the design's page on diagnosis, sections 1 and 5."""

from app.domain.comparison import NOISE_FLOOR

NOISE = NOISE_FLOOR
"""A change counts from here, or from twice the spread between repeats where that is larger."""
HARDLY_MORE = 1.5
HARDLY_ANY = 0.1
"""Of two phases that moved, one by less than this many times its noise and by less than this share of the other's time did not."""
REPEATS_FOR_A_SPREAD = 3
"""With fewer runs the spread between repeats is not known."""

AT_ROOFLINE = 0.85
GOOD = 0.75
ORDINARY = 0.5
"""Shares of the attainable rate for the bytes really read (or FLOPs really done): at the roofline, good, ordinary; less is below."""
SHORT_FLOOR_S = 1e-3
"""A decode floor below this is shorter than what launches and collectives of a step cost, so the missing time is overhead."""

MOSTLY = 0.5
"""A part explains a change when it is more than this share of it."""
SAME_KIND = 0.25
"""Two quantities that should agree do so within this share: a wait and a prompt pass, a measured ratio and the one from bytes."""
LOAD_ONLY = 0.25
"""A change of which a lone request shows less than this share, relative to the change under load, is one of load."""
FITS = 0.10
"""A curve that leaves the points it was not fitted to by less than this share explains them."""
QUADRATIC = 1 / 3
"""The part of the prompt pass that is attention, from which growth with the square of the prompt is what a reader sees."""
STEP = 1.5
"""ITL that grows by this factor between two neighbouring batches, and hardly on either side, is a step and not a slope."""
PLATEAU = 0.05
"""Rates, or step times, that differ by less over rising load are flat."""
BEYOND_CLOCKS = 0.5
"""Clocks of one device seldom halve: a prompt pass that lost more than half of its rate runs somewhere else."""
EXCESS_BYTES = 2.0
"""Bytes read per token, as a multiple of what active weights need, from which more is read than the model asks for."""
PASSED_OVER = 0.05
"""Sequences put out while others go on, for each request: a stray one may be how two clocks met, more are the scheduler's doing."""
ANSWERED = 0.85
"""Requests answered a second, as a share of those offered, from which a load is one that the deployment keeps up with."""
POOL_FULL = 0.95
"""The pool of the cache counts as full from here."""
PROPORTIONAL = (2 / 3, 3 / 2)
"""Added time that follows the number of sequences: per sequence it differs by no more than this from the lowest load to the highest."""
FAR_OFF = 0.15
"""A step this far from its floor, where the floor is long, is not the expected device reading from its own memory."""
SAME_SETTING = 0.02
"""A setting that is a quantity counts as changed from here: shares of cached tokens are never quite the same."""
JUMPED = 0.15
"""A step that jumps by more between neighbouring numbers of sequences of one run, where it did not before, is of another kind there."""
FACT_WEIGHT = 5
"""A stated fact outweighs the few times that a rule can rest on, when causes are ranked."""
