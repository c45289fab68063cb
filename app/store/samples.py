"""The codec of raw samples: a column of per-request values or of chunk gaps as a few compressed stretches.

Precision: times are kept to the microsecond (rounded to the nearest, so off by at most 0.5 µs), counts exactly. A stretch whose
values do not fit 32 bits of those (a run of hours, a negative gap, a fraction of a token) is kept wider or as plain doubles
instead. NaN, "not known", is kept; infinities and anything beyond 1e15 are not known either.

A stretch is one byte that names its layout and a zstd frame of the numbers, their bytes shuffled (all first bytes, then all second
bytes …), which makes the high bytes of similar numbers compress away.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import zstandard

Floats = npt.NDArray[np.float64]

STRETCH = 2**18
MICROSECONDS = 1e6
WHOLE = 1.0
_ABSURD = 1e15
_U32, _I64, _F64 = 1, 2, 3
_TYPES = {_U32: "<u4", _I64: "<i8", _F64: "<f8"}
_SIZES = {_U32: 4, _I64: 8, _F64: 8}
_UNKNOWN_U32 = 2**32 - 1
_UNKNOWN_I64 = -(2**63)
_LEVEL = 3


def known(values: Floats) -> Floats:
    """The values that are finite and not absurd (at most 1e15 in size)."""
    return values[_is_known(values)]


def stretches(values: Floats) -> Iterator[Floats]:
    """The column cut into stretches of STRETCH values; none when it is empty."""
    for start in range(0, values.size, STRETCH):
        yield values[start : start + STRETCH]


def encode(values: Floats, scale: float) -> bytes:
    """One stretch as bytes. `scale` is what one unit is divided into: MICROSECONDS for seconds, WHOLE for counts."""
    scaled = np.where(_is_known(values), values, np.nan) * scale
    rounded = np.rint(scaled)
    unknown = np.isnan(scaled)
    if scale == WHOLE and bool(np.any(rounded[~unknown] != scaled[~unknown])):
        return _pack(_F64, np.where(unknown, np.nan, values))
    top, bottom = (float(rounded[~unknown].max()), float(rounded[~unknown].min())) if not unknown.all() else (0.0, 0.0)
    if bottom >= 0 and top < _UNKNOWN_U32:
        return _pack(_U32, np.where(unknown, _UNKNOWN_U32, rounded))
    if max(top, -bottom) < 2**53:
        return _pack(_I64, _with_unknown(rounded, unknown))
    return _pack(_F64, np.where(unknown, np.nan, values))


def decode(blob: bytes, scale: float) -> Floats:
    """The stretch that `encode` wrote with the same scale. Raises ValueError when the bytes are no such stretch."""
    kind = blob[0] if blob else 0
    if kind not in _TYPES:
        raise ValueError(f"a stretch of samples of layout {kind} is not known here")
    try:
        raw = zstandard.ZstdDecompressor().decompress(blob[1:], max_output_size=STRETCH * 8)
    except zstandard.ZstdError as error:
        raise ValueError(f"a stretch of samples cannot be decompressed: {error}") from error
    numbers = _unshuffle(raw, kind)
    if kind == _F64:
        return numbers
    unknown = numbers == (_UNKNOWN_U32 if kind == _U32 else _UNKNOWN_I64)
    return np.where(unknown, np.nan, numbers / scale)


def _is_known(values: Floats) -> npt.NDArray[np.bool_]:
    # NaN compares false and infinity is beyond the bound, so one comparison settles all three.
    return np.less_equal(np.abs(values), _ABSURD)


def _with_unknown(rounded: Floats, unknown: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    numbers = np.where(unknown, 0.0, rounded).astype(np.int64)
    numbers[unknown] = _UNKNOWN_I64
    return numbers


def _pack(kind: int, numbers: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> bytes:
    shuffled = numbers.astype(_TYPES[kind]).view(np.uint8).reshape(numbers.size, _SIZES[kind]).T.tobytes()
    return bytes([kind]) + zstandard.ZstdCompressor(level=_LEVEL).compress(shuffled)


def _unshuffle(raw: bytes, kind: int) -> Floats:
    """The numbers of a shuffled stretch; as doubles, which hold every stored integer exactly (those wider were stored as doubles)."""
    if len(raw) % _SIZES[kind]:
        raise ValueError("a stretch of samples ends in the middle of a number")
    planes = np.frombuffer(raw, dtype=np.uint8).reshape(_SIZES[kind], -1)
    return np.ascontiguousarray(planes.T).reshape(-1).view(_TYPES[kind]).astype(np.float64)
