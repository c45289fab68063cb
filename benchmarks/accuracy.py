"""How far predictions are from measurements: `python -m benchmarks.accuracy [--serving CSV] [--groundtruth CSV] [--models DIR] [--json]`.

Without tables it scores the built-in rows; those are the rows that the profiles were fitted to, so the figures of that kind say how well
the fit describes them. `…_left_out` are of fits that saw no row of the same model, `…_device_left_out` none of the same device, and
`…_calibrated` start from the latter and use up to 16 points of the same engine, device and precision (others than those scored).
The three kinds need the built-in rows and a few minutes (`--quick` leaves them out). `--markdown` writes docs/accuracy.md's text.

The figures count every row but the impossible and those that their source calls speculative or rejected. Groups with `rules` are the same
statistics under the rules that the design's targets were set under (`benchmarks.design_rules`), which leave out more; each is counted.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.catalog import load
from app.catalog.measured import measurements
from app.catalog.names import normalise_model_name
from app.domain.architecture import ModelArchitecture
from app.domain.configs import from_config
from app.domain.errors import UnsupportedModel
from app.domain.measurement import Measurement
from app.domain.serving import MODEL_VERSION
from benchmarks.accuracy_document import markdown
from benchmarks.asked import Asked, ModelFinder, Unanswered, ask
from benchmarks.calibrated import calibrated
from benchmarks.design_rules import ORIGIN, left_out_by_design
from benchmarks.fit import distinct
from benchmarks.fitting.bands import Bands
from benchmarks.fitting.fits import Fit, device_of, served_fit, stream_fit
from benchmarks.noise import noise
from benchmarks.report import Report, Target, as_json, as_text, machine
from benchmarks.scoring import POPULATIONS, SIXTEEN_BIT, Point, exclusions, groups, known_profile, priced, statistics
from benchmarks.shared_tables import Refused, read_served, read_single

# Figures of the contract: population -> statistics that are printed as figures.
FIGURES = {
    "dense_tpot": ("median_ape", "mean_ape"),
    "moe_tpot": ("median_ape", "mean_ape", "within_20"),
    "dense_ttft": ("median_ape",),
    "moe_ttft": ("median_ape",),
    "disagg_tpot": ("median_ape",),
    "decode16": ("median_ape",),
    "decode_quantised": ("median_ape",),
    "prefill": ("median_ape",),
}
# Populations that the design's rules take no row of: they speak of served load, and disaggregated rows are judged by none.
UNTOUCHED = ("disagg_tpot", "decode16", "decode_quantised", "prefill")
TARGETS = {
    "dense_tpot_median_ape": Target(0.03),
    "dense_tpot_mean_ape": Target(0.05),
    "moe_tpot_median_ape": Target(0.07),
    "moe_tpot_mean_ape": Target(0.10),
    "dense_ttft_median_ape": Target(0.11),
    "moe_ttft_median_ape": Target(0.15),
    "decode16_median_ape": Target(0.06),
    "decode_quantised_median_ape": Target(0.06),
    "prefill_median_ape": Target(0.17),
    "unpriced_share": Target(0.05),
    "dense_tpot_median_ape_left_out": Target(0.06),
    "dense_tpot_mean_ape_left_out": Target(0.09),
    "moe_tpot_median_ape_left_out": Target(0.12),
    "moe_tpot_mean_ape_left_out": Target(0.16),
    "dense_ttft_median_ape_left_out": Target(0.22),
    "moe_ttft_median_ape_left_out": Target(0.25),
    "dense_tpot_median_ape_device_left_out": Target(0.08),
    "dense_tpot_mean_ape_device_left_out": Target(0.11),
    "moe_tpot_median_ape_device_left_out": Target(0.11),
    "moe_tpot_mean_ape_device_left_out": Target(0.17),
    "dense_ttft_median_ape_device_left_out": Target(0.20),
    "moe_ttft_median_ape_device_left_out": Target(0.25),
    "decode16_median_ape_device_left_out": Target(0.08),
    "decode_quantised_median_ape_device_left_out": Target(0.08),
    "prefill_median_ape_device_left_out": Target(0.25),
    "dense_tpot_median_ape_calibrated": Target(0.03),
    "dense_tpot_mean_ape_calibrated": Target(0.045),
    "moe_tpot_median_ape_calibrated": Target(0.07),
    "moe_tpot_mean_ape_calibrated": Target(0.10),
    "dense_ttft_median_ape_calibrated": Target(0.09),
    "moe_ttft_median_ape_calibrated": Target(0.14),
    "decode16_median_ape_calibrated": Target(0.04),
    "decode_quantised_median_ape_calibrated": Target(0.04),
    "prefill_median_ape_calibrated": Target(0.08),
    "band_coverage": Target(0.85, "at least"),
    "band_coverage_left_out": Target(0.85, "at least"),
}


def read_tables(serving: Path | None, groundtruth: Path | None) -> tuple[list[Measurement], list[dict[str, Any]]]:
    """Measurements of the tables given, or the built-in ones, and a group for each reason why a row gives none."""
    if serving is None and groundtruth is None:
        return list(measurements()), []
    rows: list[Measurement | Refused] = []
    rows += read_served(serving) if serving is not None else []
    rows += read_single(groundtruth) if groundtruth is not None else []
    reasons: dict[str, int] = {}
    for row in rows:
        if isinstance(row, Refused):
            reasons[row.reason] = reasons.get(row.reason, 0) + 1
    unread = [{"by": {"no measurement": reason}, "n": n} for reason, n in sorted(reasons.items(), key=lambda item: -item[1])]
    return [row for row in rows if isinstance(row, Measurement)], unread


def model_finder(folder: Path | None) -> ModelFinder:
    """Architectures from a folder of owner__name.json configs, found as the catalog finds names."""
    if folder is None:
        return lambda name: None
    files = {normalise_model_name(path.stem.replace("__", "/")): path for path in sorted(folder.glob("*.json"))}
    read: dict[str, ModelArchitecture | None] = {}

    def find(name: str) -> ModelArchitecture | None:
        key = normalise_model_name(name)
        if key not in read:
            read[key] = _read_config(files[key], name) if key in files else None
        return read[key]

    return find


def _read_config(path: Path, name: str) -> ModelArchitecture | None:
    try:
        return from_config(json.loads(path.read_text(encoding="utf-8")), name)
    except (UnsupportedModel, ValueError) as fault:
        print(f"{path.name}: {fault}", file=sys.stderr)
        return None


def measure(rows: Sequence[Measurement], models: ModelFinder, quick: bool) -> Report:
    """Score `rows`; unless `quick` also what is left out and calibrated, on the built-in rows."""
    found = [ask(row, load(), models) for row in distinct(rows)]
    asked = [one for one in found if isinstance(one, Asked)]
    points, refused = priced(asked)
    figures, split = _scores(points)
    figures |= _shares(found, len(refused))
    split += noise(asked)
    split += _reasons(found, [reason for _, reason in refused])
    if not quick:
        more, bands = _transfer()
        figures |= more
        split += bands
    known = sum(known_profile(one) for one in asked)
    conditions = {**machine(), "model_version": MODEL_VERSION, "measurements": len(rows), "distinct": len(found), "profile_known": known}
    return Report(figures, split, conditions)


def _scores(points: Sequence[Point]) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Figures of the contract, exclusions, the same without any exclusion, and all groups."""
    counted = [point for point in points if point.excluded is None]
    rules = left_out_by_design(list({point.asked.measurement.id: point.asked for point in points}.values()))
    figures: dict[str, float] = {}
    split: list[dict[str, Any]] = []
    for name, belongs in POPULATIONS.items():
        mine = [point for point in counted if belongs(point)]
        whole = [point for point in points if belongs(point)]
        if mine:
            found = statistics(mine)
            figures |= {f"{name}_{key}": found[key] for key in FIGURES[name]}
            split.append({"by": {"population": name}, **found})
        if whole:
            split.append({"by": {"population": name, "exclusions": "none"}, **statistics(whole)})
        seen = [point for point in mine if known_profile(point.asked)]
        if seen:
            split.append({"by": {"population": name, "profile": "known"}, **statistics(seen)})
        by_design = [point for point in mine if (point.asked.measurement.id, point.phase) not in rules]
        if by_design and name not in UNTOUCHED:
            split.append({"by": {"population": name, "rules": ORIGIN}, **statistics(by_design)})
            split += _counts(name, [rules.get((point.asked.measurement.id, point.phase)) for point in mine])
    judged = [point for point in counted if point.asked.measurement.kind != "disaggregated"]
    if judged:
        figures["band_coverage"] = float(np.mean([point.covered for point in judged]))
    return figures, split + exclusions(points) + groups(counted)


def _counts(population: str, reasons: Iterable[str | None]) -> list[dict[str, Any]]:
    """A group for each rule of the design that leaves points of a population out."""
    counted = Counter(reason for reason in reasons if reason is not None)
    return [{"by": {"population": population, "design rule": reason}, "n": n} for reason, n in counted.most_common()]


def _shares(found: Sequence[Asked | Unanswered], refused: int) -> dict[str, float]:
    answerable = [one for one in found if isinstance(one, Asked) or one.answerable]
    unpriced = sum(isinstance(one, Unanswered) for one in answerable) + refused
    return {
        "unpriced_share": unpriced / len(answerable) if answerable else float("nan"),
        "answerable_share": len(answerable) / len(found) if found else float("nan"),
    }


def _reasons(found: Sequence[Asked | Unanswered], refused: Sequence[str]) -> list[dict[str, Any]]:
    """A group for each reason why a row has no prediction."""
    reasons: dict[tuple[str, str], int] = {}
    for one in found:
        if isinstance(one, Unanswered):
            key = ("unpriced" if one.answerable else "not answerable", one.reason)
            reasons[key] = reasons.get(key, 0) + 1
    for reason in refused:
        reasons["unpriced", reason] = reasons.get(("unpriced", reason), 0) + 1
    return [{"by": {kind: reason}, "n": n} for (kind, reason), n in sorted(reasons.items(), key=lambda item: -item[1])]


def _transfer() -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Figures of left-out and calibrated predictions on the built-in rows, exclusions made, and how their bands hold."""
    found = (ask(row, load(), lambda name: None) for row in distinct(measurements()))
    asked = [one for one in found if isinstance(one, Asked)]
    excluded = {(point.asked.measurement.id, point.phase) for point in priced(asked)[0] if point.excluded is not None}
    by_design = excluded | left_out_by_design(asked).keys()
    figures: dict[str, float] = {}
    split: list[dict[str, Any]] = []
    covered: list[float] = []
    for fit in (served_fit(asked), stream_fit(asked)):
        bands, device_out = Bands.of(fit), fit.left_out(device_of)
        kinds = {"left_out": bands.model_out, "device_left_out": fit.at(device_out), "calibrated": calibrated(fit, device_out)}
        members, fewer = list(_members(fit, excluded)), list(_members(fit, by_design))
        for kind, outputs in kinds.items():
            for name, output, mine in members:
                values = _values(fit, outputs, output, mine)
                figures |= {f"{name}_{key}_{kind}": values[key] for key in FIGURES[name]}
                split.append({"by": {"population": name, "kind": kind}, **values})
            split += [
                {"by": {"population": name, "kind": kind, "rules": ORIGIN}, **_values(fit, outputs, output, mine)}
                for name, output, mine in fewer
                if name not in UNTOUCHED
            ]
        for name, output, mine in members:
            inside = bands.held(output, mine)
            covered += inside.tolist()
            split.append({"by": {"population": name, "band": "models left out"}, "n": len(inside), "covered": float(inside.mean())})
    figures["band_coverage_left_out"] = float(np.mean(covered))
    return figures, split


def _values(fit: Fit, outputs: Any, output: int, mine: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, Any]:
    """n, median and mean error and the share within 20 % of the rows `mine` that have this output."""
    error = np.abs(outputs[mine, output] / fit.rows.measured[mine, output] - 1.0)
    error = error[np.isfinite(error)]
    shares = {"median_ape": float(np.median(error)), "mean_ape": float(np.mean(error)), "within_20": float(np.mean(error <= 0.2))}
    return {"n": len(error), **shares}


def _members(fit: Fit, excluded: Container[tuple[str, str]]) -> Iterable[tuple[str, int, np.ndarray[Any, np.dtype[np.bool_]]]]:
    """Each population that a fit's rows are part of: its name, the output that it is, and the rows."""
    asked = fit.rows.asked

    def counted(phase: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.array([(one.measurement.id, phase) not in excluded for one in asked])

    if fit.rows.measured.shape[1] == 2:
        experts = np.array([one.experts for one in asked])
        for word, mine in (("dense", ~experts), ("moe", experts)):
            yield f"{word}_tpot", 0, mine & counted("decode")
            yield f"{word}_ttft", 1, mine & counted("prefill")
        return
    plain = np.array([one.request.weight_dtype in SIXTEEN_BIT for one in asked])
    prefill = fit.rows.prefill
    yield "decode16", 0, ~prefill & plain & counted("decode")
    yield "decode_quantised", 0, ~prefill & ~plain & counted("decode")
    yield "prefill", 0, prefill & counted("prefill")


def main(arguments: Sequence[str]) -> int:
    """Read, score, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--serving", type=Path, metavar="CSV", help="a table of served load")
    parser.add_argument("--groundtruth", type=Path, metavar="CSV", help="a table of single figures")
    parser.add_argument("--models", type=Path, metavar="DIR", help="owner__name.json configs of models that the catalog lacks")
    parser.add_argument("--quick", action="store_true", help="without left-out and calibrated figures")
    parser.add_argument("--peers", type=Path, metavar="JSON", help="what `benchmarks.peers --json` printed, for --markdown")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true")
    shape.add_argument("--markdown", action="store_true", help="the text of docs/accuracy.md")
    options = parser.parse_args(arguments)
    rows, unread = read_tables(options.serving, options.groundtruth)
    report = measure(rows, model_finder(options.models), options.quick)
    report = Report(report.figures, [*report.groups, *unread], report.conditions)
    if options.markdown:
        peers = json.loads(options.peers.read_text(encoding="utf-8")) if options.peers else None
        print(markdown(report, TARGETS, peers))
    else:
        print(as_json(report) if options.json else as_text(report, TARGETS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
