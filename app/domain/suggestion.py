"""What the words around a run hint at: model, device, engine, parallelism and number formats, read from file names, folders and labels.

A hint is never taken as known: a person accepts it. Its rule of confidence is one sentence: words that narrow to a single meaning give a
value; words that could mean a few things give those as candidates and no value; words that could mean many give nothing. Where several
places agree on something, that counts; where they contradict each other, all of it is shown and none is preferred.

Words are compared without separators, in lower case: `llama33_70b` and `Llama-3.3-70B` are one run of letters and digits.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.domain.dtypes import ALIASES, FORMATS
from app.domain.identity import Word

MOST_CANDIDATES = 6
LONGEST_TEXT = 400
_LONGEST_NAME = 8  # words of one name
_WORD = re.compile(r"[a-z0-9]+")
_HAS_LETTER, _HAS_DIGIT = re.compile(r"[a-z]"), re.compile(r"\d")
# Words that a device's spelling may have in front of what people write.
_VENDORS = frozenset({"nvidia", "amd", "intel", "apple", "google"})
_BRANDS = ("instinct", "geforce", "radeon", "tesla", "rtx", "cpu")
# Entries for the sums of a text: nobody measures them.
_NOT_MEASURED = "textbook"
_TIMES_DEVICE = re.compile(r"(?<![a-z0-9.])(\d{1,3})[-_ ]?[x×*][-_ ]?(?=[a-z])")
_DEVICE_TIMES = re.compile(r"([a-z]+\d+[a-z]*?)[-_ ]?[x×][-_ ]?(\d{1,3})(?![a-z0-9])")
_DEVICES = re.compile(
    r"(?<![a-z0-9.])(\d{1,3})[-_ ]?gpus?(?![a-z0-9])"
    r"|(?<![a-z])(?:n|num)[-_ ]?(?:gpu|device)s?[-_ =:]{0,2}(\d{1,3})(?!\d)"
    r"|(?<![a-z])gpu[-_ ]?count[-_ =:]{0,2}(\d{1,3})(?!\d)"
)
_DEGREES = {
    "tp": re.compile(r"(?<![a-z])(?:tp|tensor[-_ ]?parallel(?:ism)?)(?:[-_ ]?size)?[-_ =:]{0,2}(\d{1,4})(?!\d|\.\d)"),
    "pp": re.compile(r"(?<![a-z])(?:pp|pipeline[-_ ]?parallel(?:ism)?)(?:[-_ ]?size)?[-_ =:]{0,2}(\d{1,4})(?!\d|\.\d)"),
    "ep": re.compile(r"(?<![a-z])(?:ep|expert[-_ ]?parallel(?:ism)?)(?:[-_ ]?size)?[-_ =:]{0,2}(\d{1,4})(?!\d|\.\d)"),
    "dp": re.compile(r"(?<![a-z])(?:dp|data[-_ ]?parallel(?:ism)?)(?:[-_ ]?size)?[-_ =:]{0,2}(\d{1,4})(?!\d|\.\d)"),
}
# `pp512` is the prompt test of llama.cpp, not 512 stages; no deployment is wider than these.
_WIDEST = {"tp": 64, "pp": 64, "ep": 1024, "dp": 1024}
_KV = frozenset({"kv", "kvcache"})
_AFTER_KV = frozenset({"cache", "dtype", "type", "d", "t"})
# Ordinary words are no number format.
_FORMAT_OF = {key: form for key, form in {**{key: key for key in FORMATS}, **ALIASES}.items() if key not in ("half", "float")}


# Words of a text, and what they may mean.
Meaning = tuple[str, frozenset[Word]]


@dataclass(frozen=True)
class Source:
    """A place with words in it: `where` as a reader calls it ("the file name"), and the words."""

    where: str
    text: str


@dataclass(frozen=True)
class Suggestion:
    """A hint about one key of the identity. `value` is there when it is the only candidate; `evidence` says where each word stood."""

    key: str
    value: Word | None
    candidates: tuple[Word, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Lexicon:
    """The names that words are matched against. Spellings are keys as a catalog compares them: words joined by hyphens.

    `heard` remembers what a text was found to say, since the runs of a file share most of their words.
    """

    devices: Mapping[str, str]
    device_starts: Mapping[str, frozenset[str]]
    device_words: Mapping[str, frozenset[str]]
    models: Mapping[str, frozenset[str]]
    engines: Mapping[str, str]
    heard: dict[tuple[str, str], tuple[Meaning, ...]] = field(default_factory=dict, compare=False)


def lexicon(devices: Mapping[str, str], models: Mapping[str, str], engines: Mapping[str, str]) -> Lexicon:
    """The lexicon of spellings, each with the slug it means."""
    exact: dict[str, str] = {}
    starts: dict[str, set[str]] = {}
    words: dict[str, set[str]] = {}
    for spelling, slug in devices.items():
        parts = spelling.split("-")
        if parts[0] == _NOT_MEASURED:
            continue
        exact[_joined(parts)] = slug
        words.setdefault(slug, set()).update(parts)
        for tail in _without_brands(parts):
            for length in range(1, len(tail) + 1):
                starts.setdefault(_joined(tail[:length]), set()).add(slug)
    named: dict[str, set[str]] = {}
    for spelling, slug in models.items():
        if not spelling.startswith(_NOT_MEASURED):
            named.setdefault(_joined(spelling.split("-")), set()).add(slug)
    return Lexicon(
        exact,
        {start: frozenset(slugs) for start, slugs in starts.items()},
        {slug: frozenset(found) for slug, found in words.items()},
        {name: frozenset(slugs) for name, slugs in named.items()},
        dict(engines),
    )


def suggestions(sources: Iterable[Source], names: Lexicon, wanted: Iterable[str]) -> tuple[Suggestion, ...]:
    """What the sources hint at, for each wanted key of the identity that anything hints at, in the order of `wanted`."""
    texts = [Source(source.where, source.text[:LONGEST_TEXT].lower()) for source in sources]
    found = ((key, _heard(texts, key, names)) for key in wanted if key in _READERS)
    return tuple(made for key, heard in found if (made := _suggestion(key, heard)) is not None)


@dataclass(frozen=True)
class _Heard:
    """What one place says about one key: the meanings that its words may have."""

    evidence: str
    meanings: frozenset[Word]


def _heard(sources: Iterable[Source], key: str, names: Lexicon) -> list[_Heard]:
    heard: list[_Heard] = []
    for source in sources:
        if (key, source.text) not in names.heard:
            names.heard[key, source.text] = tuple(_READERS[key](source.text, names))
        heard.extend(_Heard(f"from {source.where}: {words}", meanings) for words, meanings in names.heard[key, source.text])
    return heard


def _suggestion(key: str, heard: list[_Heard]) -> Suggestion | None:
    if not heard:
        return None
    agreed = frozenset.intersection(*(each.meanings for each in heard))
    meanings = agreed or frozenset.union(*(each.meanings for each in heard))
    if len(meanings) > MOST_CANDIDATES:
        return None
    candidates = tuple(sorted(meanings, key=lambda word: (isinstance(word, str), word)))
    evidence = tuple(dict.fromkeys(each.evidence for each in heard))
    return Suggestion(key, candidates[0] if len(candidates) == 1 else None, candidates, evidence)


_Reader = Callable[[str, Lexicon], Iterator[Meaning]]


def _devices_named(text: str, names: Lexicon) -> Iterator[Meaning]:
    """Devices: a spelling of the catalog, else the start of some, narrowed by the other words of the same text (`sxm`, `80gb`)."""
    words = _split_counts(_WORD.findall(text), names)
    for start, end, slugs in _names_in(words, lambda name: _device(name, names)):
        rest = (*words[:start], *words[end:])
        yield " ".join(words[start:end]), frozenset(_narrowed(slugs, rest, names))


def _device(name: str, names: Lexicon) -> frozenset[str]:
    if name in names.devices:
        return frozenset({names.devices[name]})
    return names.device_starts.get(name, frozenset())


def _narrowed(slugs: frozenset[str], words: Iterable[str], names: Lexicon) -> frozenset[str]:
    for word in words:
        if len(slugs) > 1 and len(word) > 1 and not word.isdigit():
            fitting = frozenset(slug for slug in slugs if any(part.startswith(word) for part in names.device_words[slug]))
            slugs = fitting or slugs
    return slugs


def _split_counts(words: list[str], names: Lexicon) -> list[str]:
    """`8xh200` and `h200x8` as their parts, where one of them is a device."""
    split: list[str] = []
    for word in words:
        before, after = re.fullmatch(r"(\d{1,3})x([a-z]\w*)", word), re.fullmatch(r"([a-z]+\d+[a-z]*?)x(\d{1,3})", word)
        if _device(word, names):
            split.append(word)
        elif before and _device(before[2], names):
            split.extend(before.groups())
        elif after and _device(after[1], names):
            split.extend(after.groups())
        else:
            split.append(word)
    return split


def _models_named(text: str, names: Lexicon) -> Iterator[Meaning]:
    """Models: a whole spelling of the catalog, the longest that stands there."""
    words = _WORD.findall(text)
    for start, end, slugs in _names_in(words, lambda name: names.models.get(name, frozenset())):
        yield " ".join(words[start:end]), frozenset(slugs)


def _engines_named(text: str, names: Lexicon) -> Iterator[Meaning]:
    words = _WORD.findall(text)
    for start, end, slugs in _names_in(words, lambda name: frozenset({names.engines[name]} if name in names.engines else ()), digits=False):
        yield " ".join(words[start:end]), frozenset(slugs)


def _names_in(
    words: list[str], slugs_of: Callable[[str], frozenset[str]], digits: bool = True
) -> Iterator[tuple[int, int, frozenset[str]]]:
    """The longest names from left to right, each word in one of them at most. A name has a letter, and a digit where `digits` asks."""
    start = 0
    while start < len(words):
        for end in range(min(len(words), start + _LONGEST_NAME), start, -1):
            name = _joined(words[start:end])
            if _HAS_LETTER.search(name) and (not digits or _HAS_DIGIT.search(name)) and (slugs := slugs_of(name)):
                yield start, end, slugs
                start = end - 1
                break
        start += 1


def _device_counts(text: str, names: Lexicon) -> Iterator[Meaning]:
    """`8xH100`, `h100x8`, `8 GPUs`, `num_gpus=8`."""
    for match in _TIMES_DEVICE.finditer(text):
        words = _WORD.findall(text[match.end() :])[:_LONGEST_NAME]
        words = words[1:] if words and words[0] in _VENDORS else words
        if any(start == 0 for start, _, _ in _names_in(words, lambda name: _device(name, names))):
            yield from _count(match.group().strip("-_ ") + words[0], match[1])
    for match in _DEVICE_TIMES.finditer(text):
        if _device(match[1], names) and not _device(match.group(), names):
            yield from _count(match.group(), match[2])
    for match in _DEVICES.finditer(text):
        yield from _count(match.group(), next(group for group in match.groups() if group))


def _count(words: str, digits: str) -> Iterator[Meaning]:
    if 1 <= int(digits) <= 512:
        yield words, frozenset({int(digits)})


def _degree(key: str) -> _Reader:
    def read(text: str, names: Lexicon) -> Iterator[Meaning]:
        for match in _DEGREES[key].finditer(text):
            if 1 <= int(match[1]) <= _WIDEST[key]:
                yield match.group(), frozenset({int(match[1])})

    return read


def _formats_named(of_cache: bool) -> _Reader:
    """Number formats: of the KV cache where the word stands beside `kv`, of the weights elsewhere."""

    def read(text: str, names: Lexicon) -> Iterator[Meaning]:
        words = [part for word in _WORD.findall(text) for part in _beside_kv(word)]
        position = 0
        while position < len(words):
            length, form = _format_at(words, position)
            if form is None:
                position += 1
                continue
            if _stands_by_kv(words, position, position + length) is of_cache and (FORMATS[form].kv if of_cache else FORMATS[form].weights):
                yield " ".join(words[position : position + length]), frozenset({form})
            position += length

    return read


def _stands_by_kv(words: list[str], start: int, end: int) -> bool:
    """Whether `kv` stands before the format (`kv_cache_dtype fp8`), or behind it and before no other (`fp8 kv`)."""
    before = start - 1
    while before >= 0 and words[before] in _AFTER_KV:
        before -= 1
    if before >= 0 and words[before] in _KV:
        return True
    after = end + 1
    while after < len(words) and words[after] in _AFTER_KV:
        after += 1
    return end < len(words) and words[end] in _KV and _format_at(words, after)[1] is None


def _beside_kv(word: str) -> tuple[str, ...]:
    """`kvfp8` and `fp8kv` as two words."""
    for cut in (word.removeprefix("kv"), word.removesuffix("kv")):
        if cut != word and cut in _FORMAT_OF:
            return ("kv", cut) if word.startswith("kv") else (cut, "kv")
    return (word,)


def _format_at(words: list[str], position: int) -> tuple[int, str | None]:
    """The longest number format that begins here, and how many words it has."""
    for length in (3, 2, 1):
        name = "_".join(words[position : position + length])
        if len(words) >= position + length and name in _FORMAT_OF:
            return length, _FORMAT_OF[name]
    return 1, None


def _joined(words: Iterable[str]) -> str:
    return "".join(words)


def _without_brands(parts: list[str]) -> Iterator[list[str]]:
    """The spelling, and what is left of it after each brand in front."""
    yield parts
    while parts and parts[0] in _BRANDS:
        parts = parts[1:]
        yield parts


_READERS: Mapping[str, _Reader] = {
    "model": _models_named,
    "hardware": _devices_named,
    "engine": _engines_named,
    "devices": _device_counts,
    **{key: _degree(key) for key in _DEGREES},
    "weight_dtype": _formats_named(of_cache=False),
    "kv_dtype": _formats_named(of_cache=True),
}
