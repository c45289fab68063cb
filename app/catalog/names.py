"""How a spelling becomes the key it is looked up by, and the index of those keys.

Look-up is exact after normalisation: a name that is not listed finds nothing, since a wrong device or model is worse than none.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping

VENDORS = ("nvidia", "amd", "intel", "apple", "google", "aws", "amazon", "sambanova")
MODEL_SUFFIXES = ("-hf", "-instruct", "-chat", "-it", "-fp8", "-nvfp4")
LONGEST_NAME = 200

_OTHER = re.compile(r"[^a-z0-9]+")
_TRADEMARK = re.compile(r"\((?:r|tm)\)|[®™]", re.IGNORECASE)
# Vulkan drivers append themselves to the device's name: "Radeon 8060S Graphics (RADV STRIX_HALO)".
_DRIVER = re.compile(r"\((?:radv[^()]*|(?:amd|intel|nvidia)\b[^()]*\b(?:driver|corporation)|bmg g\d+|dg2)\)", re.IGNORECASE)
# llama.cpp names a file by the model and its weight format: "Llama-3.2-1B-Instruct-Q4_K_M.gguf", possibly split in parts.
_GGUF = re.compile(r"(?:[-._](?:ud[-._])?(?:i?q\d\w*|tq\d\w*|b?f16|f32|mxfp4\w*))?(?:-\d{5}-of-\d{5})?\.gguf\Z", re.IGNORECASE | re.ASCII)


class CatalogFault(Exception):
    """The catalog contradicts itself or misses a fact: a fault of ours, found when it is loaded."""


def slugify(words: str) -> str:
    """Lower case, every run of other characters than a-z and 0-9 as one hyphen."""
    return _OTHER.sub("-", words.lower()).strip("-")


def normalise_device_name(words: str) -> str:
    """The key of a device: slug form without trademark signs, a driver's addition and the vendor in front."""
    key = slugify(_DRIVER.sub(" ", _TRADEMARK.sub(" ", words)))
    vendor, _, rest = key.partition("-")
    return rest if rest and vendor in VENDORS else key


def normalise_model_name(words: str) -> str:
    """The key of a model: slug form without owner or folder, a leading "Meta-", and the suffixes that leave shapes alone."""
    name = re.split(r"[/\\]", words.strip().rstrip("/\\"))[-1]
    key = slugify(_GGUF.sub("", name)).removeprefix("meta-")
    while suffix := next((suffix for suffix in MODEL_SUFFIXES if key.endswith(suffix)), None):
        key = key.removesuffix(suffix)
    return key


def normalise_engine_name(words: str) -> str:
    """The key of an engine: letters and digits alone, so that "llama.cpp", "llama-cpp" and "llamacpp" are one."""
    return slugify(words).replace("-", "")


class NameIndex:
    """Keys of one kind of entry, each claimed by one slug only."""

    def __init__(self, kind: str, normalise: Callable[[str], str]) -> None:
        self._kind = kind
        self._normalise = normalise
        self._slug_of: dict[str, str] = {}

    def claim(self, slug: str, spellings: Iterable[str], why_not: Callable[[str, str], str] = lambda one, other: "") -> None:
        """Register each spelling for `slug`; a key that another entry holds is a fault, which `why_not` may explain."""
        for spelling in spellings:
            key = self._normalise(spelling)
            if not key:
                raise CatalogFault(f"{self._kind} {slug}: the spelling {spelling!r} has no letter or digit; remove it")
            holder = self._slug_of.setdefault(key, slug)
            if holder != slug:
                reason = why_not(holder, slug)
                raise CatalogFault(f"{self._kind} {slug}: {spelling!r} already names {holder}{reason}; let one entry keep it")

    def find(self, words: str) -> str | None:
        """The slug that `words` names, None when none does."""
        return self._slug_of.get(self._normalise(words)) if len(words) <= LONGEST_NAME else None

    def near(self, words: str, limit: int = 3) -> tuple[str, ...]:
        """Up to `limit` slugs that look like `words`: those whose key holds it as whole parts, then close spellings."""
        key = self._normalise(words[:LONGEST_NAME])
        if not key:
            return ()
        holding = (known for known in self._slug_of if f"-{key}-" in f"-{known}-")
        close = difflib.get_close_matches(key, self._slug_of, n=3 * limit, cutoff=0.6)
        return tuple(dict.fromkeys(self._slug_of[known] for known in (*holding, *close)))[:limit]

    def keys(self) -> Mapping[str, str]:
        """Every key and the slug it names."""
        return dict(self._slug_of)
