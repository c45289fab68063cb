"""Who made how much of a change, when several things changed at once and none of them came first.

The share of a factor is its effect averaged over every order in which the factors could have been swapped, one after another:

    phi(i) = sum over S without i of |S|! (n - |S| - 1)! / n! x (v(S + i) - v(S))

The shares sum to v(all) - v(none) exactly, do not depend on how factors are listed, and change sign when the two ends are swapped.
Source: Shapley, A value for n-person games, 1953. Every subset is priced, so the number of factors must stay small.
"""

from collections.abc import Callable
from math import factorial

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def shapley(factors: int, value: Callable[[int], Floats]) -> Floats:
    """The share of each factor, one row each, in the unit of `value`.

    `value` gives a vector for a set of swapped factors, told as bits: bit i is set where factor i is at its new value.
    """
    if not factors:
        return np.zeros((0, value(0).size))
    values = np.array([value(subset) for subset in range(2**factors)])
    subsets = np.arange(2**factors)
    sizes = np.array([int(subset).bit_count() for subset in subsets])
    weights = np.array([factorial(size) * factorial(max(factors - size - 1, 0)) / factorial(factors) for size in range(factors + 1)])
    shares = np.empty((factors, values.shape[1]))
    for factor in range(factors):
        without = subsets[(subsets >> factor) & 1 == 0]
        shares[factor] = weights[sizes[without]] @ (values[without | 1 << factor] - values[without])
    return shares
