"""What every kind of job has: checked parameters, and an estimate of its cost before it starts."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.domain.errors import InvalidRequest

MIB = 1024 * 1024

TokenCount = Annotated[int, Field(ge=1, le=2_000_000)]
Concurrency = Annotated[int, Field(ge=1, le=4096)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]


@dataclass(frozen=True)
class DeviceFacts:
    """What a worker says of one of its devices. Bytes and counts; None where the device does not say."""

    name: str
    kind: str
    backends: tuple[str, ...]
    memory_bytes: int | None = None
    hardware: str | None = None

    @property
    def is_cpu(self) -> bool:
        """True for the host's own processor, which measures within narrower limits."""
        return self.kind == "cpu"


@dataclass(frozen=True)
class Estimate:
    """What a job will take on a device, in seconds and bytes, and one sentence that says what runs it.

    `rough`: no more than the order of the time is known. `at_most_s` is when the job's own limits end it, None where it has none.
    """

    seconds: float
    memory_bytes: int | None
    sentence: str
    rough: bool = False
    at_most_s: float | None = None


class JobParameters(BaseModel):
    """Parameters of one kind: each field carries its title, its limits, its unit and what it is for; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    title: ClassVar[str]
    needs_device: ClassVar[bool] = True

    @abstractmethod
    def estimate(self, device: DeviceFacts) -> Estimate:
        """Seconds and memory of this job on `device`. Raises InvalidRequest, by field, for what the device cannot do."""


def read_parameters(kind: type[JobParameters], values: Mapping[str, Any]) -> JobParameters:
    """`values` as parameters of `kind`. Raises InvalidRequest that names the first wrong field and says why."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "parameters"
        raise InvalidRequest(where, f"{kind.title}: {where} cannot be used: {str(first['msg']).removeprefix('Value error, ')}.") from error
