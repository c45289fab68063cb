"""Other predictors on the same rows: `python -m benchmarks.peers [--scratch DIR] [--limit N] [--json]`.

Each peer is installed in an environment of its own under the scratch folder and run there as a program; its data files are not read by
us. Answers are kept in the scratch folder, so that the table can be made again in a minute. What a peer refuses is counted.
"""

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.catalog import load
from app.catalog.measured import measurements
from benchmarks.asked import Asked
from benchmarks.fit import questions
from benchmarks.fitting.fits import model_of, served_fit, stream_fit
from benchmarks.report import Report, as_json, as_text, machine
from benchmarks.scoring import POPULATIONS, Point, priced

PROGRAMS = Path(__file__).with_name("peer_programs")
Left = Mapping[tuple[str, str], float]  # our left-out predictions by row and phase
FEWEST = 5  # rows that make a group of the table


@dataclass(frozen=True)
class Peer:
    """A predictor: what is installed, and the program that asks it."""

    name: str
    packages: tuple[str, ...]
    program: str


PEERS = (
    Peer("aiconfigurator", ("aiconfigurator==0.12.0",), "ask_aiconfigurator.py"),
    Peer("genz-llm", ("genz-llm", "seaborn"), "ask_genz.py"),
    Peer("ridgepoint", ("ridgepoint",), "ask_ridgepoint.py"),
)


def question(asked: Asked) -> dict[str, Any]:
    """A row as a peer is asked about it: what is known of the deployment, nothing that was measured."""
    row, request, device = asked.measurement, asked.request, asked.hardware
    entry = load().find_model(row.model)
    names = [] if entry is None else [entry.name, *entry.aliases]
    return {
        "id": row.id,
        "kind": row.kind,
        "engine": asked.engine,
        "model": row.model,
        "other_names": [name for name in names if "/" in name],
        "hardware": row.hardware,
        "device": {
            "tflops": device.peak_flops_per_s.get("bf16", 0.0) / 1e12,
            "memory_gb": (device.memory_bytes or 0.0) / 1e9,
            "bandwidth_gb_per_s": device.bandwidth_bytes_per_s / 1e9,
            "link_gb_per_s": (device.link_bytes_per_s or 0.0) / 1e9,
        },
        "experts": asked.experts,
        "devices": row.layout.devices,
        "tp": request.tp,
        "pp": request.pp,
        "dp": request.dp,
        "ep": request.ep,
        "weights": asked.weights,
        "weight_dtype": row.weight_dtype,
        "expert_dtype": row.expert_dtype,
        "sequences": row.sequences,
        "prompt_tokens": request.prompt_tokens,
        "output_tokens": request.output_tokens,
    }


def environment(peer: Peer, scratch: Path) -> Path:
    """The interpreter of the peer's own environment, made on first use."""
    folder = scratch / f"{peer.name}-environment"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *peer.packages], check=True)
        (folder / "installed").touch()
    return python


def answers(peer: Peer, asked: Sequence[Mapping[str, Any]], scratch: Path, kept_only: bool) -> dict[str, dict[str, Any]]:
    """The peer's answer to each question by id: those kept from before, and the others asked now."""
    kept = scratch / f"{peer.name}-answers.jsonl"
    known: dict[str, dict[str, Any]] = {}
    if kept.exists():
        known = {one["id"]: one for line in kept.read_text(encoding="utf-8").splitlines() if (one := json.loads(line))}
    missing = [one for one in asked if one["id"] not in known]
    if missing and not kept_only:
        text = "".join(json.dumps(one) + "\n" for one in missing)
        with kept.open("a", encoding="utf-8") as file:
            command = [environment(peer, scratch), PROGRAMS / peer.program]
            subprocess.run(command, input=text, stdout=file, stderr=subprocess.DEVNULL, text=True, check=True)
        known |= {one["id"]: one for line in kept.read_text(encoding="utf-8").splitlines() if (one := json.loads(line))}
    return known


def left_out_times(asked: Sequence[Asked]) -> dict[tuple[str, str], float]:
    """Our predictions with the row's model left out of the fit, by row and phase."""
    found: dict[tuple[str, str], float] = {}
    for fit in (served_fit(asked), stream_fit(asked)):
        outputs = fit.at(fit.left_out(model_of))
        for place, one in enumerate(fit.rows.asked):
            if outputs.shape[1] == 2:
                found |= {(one.measurement.id, "decode"): outputs[place, 0], (one.measurement.id, "prefill"): outputs[place, 1]}
            else:
                found[one.measurement.id, "prefill" if fit.rows.prefill[place] else "decode"] = outputs[place, 0]
    return found


def compared(peer: Peer, points: Sequence[Point], told: Mapping[str, Mapping[str, Any]], left: Left) -> list[dict[str, Any]]:
    """Groups of the rows that both answer: whole populations, then each by engine."""
    groups: dict[str, list[tuple[Point, float]]] = {}
    silent: dict[str, int] = {}
    for point in points:
        answer = told.get(point.asked.measurement.id, {"refused": "not asked"})
        time = answer.get("itl_s" if point.phase == "decode" else "ttft_s")
        population = next((name for name, belongs in POPULATIONS.items() if belongs(point)), None)
        if population is None or population == "disagg_tpot":
            continue
        if time is None or not np.isfinite(time) or time <= 0:
            reason = str(answer.get("refused", "no figure")).split(":")[0]
            silent[reason] = silent.get(reason, 0) + 1
            continue
        for name in (population, f"{population}, {point.asked.engine}"):
            groups.setdefault(name, []).append((point, float(time)))
    found = [_group(peer, name, mine, left) for name, mine in sorted(groups.items()) if len(mine) >= FEWEST]
    return found + [
        {"by": {"peer": peer.name, "refused": reason}, "n": n} for reason, n in sorted(silent.items(), key=lambda item: -item[1])
    ]


def _group(peer: Peer, name: str, mine: Sequence[tuple[Point, float]], left: Left) -> dict[str, Any]:
    theirs = np.array([abs(time / point.measured_s - 1.0) for point, time in mine])
    ours = np.array([point.error for point, _ in mine])
    apart = np.array(
        [abs(left[key] / point.measured_s - 1.0) for point, _ in mine if (key := (point.asked.measurement.id, point.phase)) in left]
    )
    found = {
        "by": {"peer": peer.name, "group": name},
        "n": len(mine),
        "median_ape": float(np.median(theirs)),
        "mean_ape": float(theirs.mean()),
    }
    found |= {"ours_median_ape": float(np.median(ours)), "ours_mean_ape": float(ours.mean())}
    if len(apart) >= FEWEST:
        found |= {"ours_left_out_median_ape": float(np.median(apart)), "ours_left_out_mean_ape": float(apart.mean())}
    return found


def measure(scratch: Path, limit: int | None, kept_only: bool) -> Report:
    """Ask every peer and compare."""
    asked = questions(measurements())
    mine = sorted(
        (one for one in asked if one.measurement.kind != "disaggregated"),
        key=lambda one: (one.hardware.slug, one.engine, one.measurement.model),
    )
    chosen = mine[:: max(len(mine) // limit, 1)] if limit else mine
    points = [point for point in priced(chosen)[0] if point.excluded is None]
    left = left_out_times(asked)
    found: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    for peer in PEERS:
        told = answers(peer, [question(one) for one in chosen], scratch, kept_only)
        rows = compared(peer, points, told, left)
        found += rows
        figures[f"{peer.name.replace('-', '_')}_answered_share"] = sum(
            "refused" not in told.get(one.measurement.id, {"refused": ""}) for one in chosen
        ) / len(chosen)
    versions = {peer.name: " ".join(peer.packages) for peer in PEERS}
    return Report(figures, found, {**machine(), "rows": len(chosen), "peers": versions})


def main(arguments: Sequence[str]) -> int:
    """Ask, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "phaseline-peers"
    parser.add_argument("--scratch", type=Path, default=home, help="environments and answers are kept here")
    parser.add_argument("--limit", type=int, help="about so many rows, spread over all")
    parser.add_argument("--kept", action="store_true", help="only the answers kept from before; nothing is asked or installed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    options.scratch.mkdir(parents=True, exist_ok=True)
    report = measure(options.scratch, options.limit, options.kept)
    print(as_json(report) if options.json else as_text(report, {}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
