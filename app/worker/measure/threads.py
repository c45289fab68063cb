"""Thread counts of the libraries of arithmetic, pinned: two contended threads can make a step of 4 ms one of 99 ms."""

from collections.abc import Mapping

COUNTS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS")


def pinned_environment(threads: int | None, environment: Mapping[str, str]) -> Mapping[str, str] | None:
    """`environment` with every library held to `threads`; None when it is so already, or no number is given."""
    if threads is None:
        return None
    wanted = dict.fromkeys(COUNTS, str(threads))
    return None if all(environment.get(key) == value for key, value in wanted.items()) else {**environment, **wanted}
