"""The five scalars of a calibration, as factors on the rates of the nearest profile, each within its physical bounds."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from app.domain.pass_numbers import Quantity

NAMES = ("read", "compute", "layers", "steps", "interference")
# Bounds of what the factors move: e_b, the factor on e_c, seconds a layer, seconds a step, the share of interference.
_LEAST_READ, _COMPUTE, _MOST_LAYER_S, _MOST_STEP_S, _MOST_INTERFERENCE = 0.4, (0.5, 1.3), 60e-6, 4e-3, 1.5


@dataclass(frozen=True)
class Scalars:
    """Factors (1: as the profile says), floats or arrays for a fit that prices many settings at once.

    `read` multiplies the bandwidth that reads of weights, experts and caches reach, `compute` the e_c of products, `layers` the fixed
    times of layers and collectives, `steps` what the host does (scheduler, its looks, front-end), `interference` the share of other
    requests' prefills between two tokens.
    """

    read: Quantity = 1.0
    compute: Quantity = 1.0
    layers: Quantity = 1.0
    steps: Quantity = 1.0
    interference: Quantity = 1.0

    @property
    def plain(self) -> bool:
        """Whether nothing is changed."""
        return all(isinstance(value, float) and value == 1.0 for value in (getattr(self, item.name) for item in fields(self)))

    def applied(self, rates: Any) -> Any:
        """The rates (`rates.Rates`) with these factors: no efficiency above 1, so that no expected time beats its floor.

        e_b stays from 0.4 to 1, the factor on e_c from 0.5 to 1.3, a layer's time up to 60 µs, a step's up to 4 ms, interference up to
        1.5; a profile that lies outside keeps its own figure as that bound.
        """
        compute = np.clip(self.compute, *_COMPUTE)
        return replace(
            rates,
            weight_efficiency=_read(rates.weight_efficiency, self.read),
            expert_weight_efficiency=_read(rates.expert_weight_efficiency, self.read),
            kv_efficiency=_read(rates.kv_efficiency, self.read),
            gemm_efficiency=np.minimum(1.0, compute * rates.gemm_efficiency),
            expert_efficiency=np.minimum(1.0, compute * rates.expert_efficiency),
            per_layer_s=np.minimum(self.layers * rates.per_layer_s, np.maximum(_MOST_LAYER_S, rates.per_layer_s)),
            per_expert_layer_s=np.minimum(self.layers * rates.per_expert_layer_s, np.maximum(_MOST_LAYER_S, rates.per_expert_layer_s)),
            all_reduce_alpha_s=self.layers * rates.all_reduce_alpha_s,
            step_s=np.minimum(self.steps * rates.step_s, np.maximum(_MOST_STEP_S, rates.step_s)),
            per_sequence_s=self.steps * rates.per_sequence_s,
            sequence_layer_s=self.layers * rates.sequence_layer_s,
            front_end_s=self.steps * rates.front_end_s,
            serial_front_end_s=self.steps * rates.serial_front_end_s,
            admission_steps=self.steps * rates.admission_steps,
            interference=np.minimum(self.interference * rates.interference, np.maximum(_MOST_INTERFERENCE, rates.interference)),
        )


def _read(efficiency: Quantity, factor: Quantity) -> Quantity:
    found: Quantity = np.clip(factor * efficiency, np.minimum(_LEAST_READ, efficiency), 1.0)
    return found
