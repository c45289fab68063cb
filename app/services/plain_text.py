"""Predictions, runs and comparisons as lines of plain text, for a terminal."""

from collections.abc import Mapping
from typing import Any

from app.domain.comparison import Comparison
from app.domain.prediction import Prediction
from app.domain.quantity import bytes_, count, factor, flops, number, percent, seconds, tokens_rate
from app.domain.simulation import Crossing, Target
from app.services.attribution_words import attribution_sentences
from app.services.diagnosing import Explained
from app.services.pools import binding_words, per_device, splits_of
from app.services.predicting import Answer
from app.services.sentences import because, comparison_sentence
from app.services.under_load import UnderLoad


def prediction_lines(prediction: Prediction) -> list[str]:
    """Both phases with their floors, the request, the rates, and what was assumed."""
    lines = []
    for name, cost in (("prefill", prediction.prefill), ("decode", prediction.decode)):
        work = f"{cost.bound}-bound, {flops(cost.flops)}, {bytes_(cost.bytes)}"
        lines.append(f"{name:8} {seconds(cost.time_s):>10}   floor {seconds(cost.floor_s):>10}   {work}")
    phases = f"TTFT {seconds(prediction.ttft_s)}, ITL {seconds(prediction.itl_s)}, prefill {percent(prediction.prefill_share)} of it"
    lines.append(f"{'request':8} {seconds(prediction.total_s):>10}   {phases}")
    rates = (tokens_rate(prediction.request_tokens_per_s, "request"), tokens_rate(prediction.aggregate_tokens_per_s, "aggregate"))
    lines.append(f"{'rate':8} {', '.join(rates)}")
    return [*lines, *(f"- {sentence}" for sentence in prediction.assumptions)]


def pools_lines(found: Answer) -> list[str]:
    """Pools of their own: what each keeps up with, the way between them, rates by their devices, the best split; nothing without pools."""
    pools, request = found.prediction.pools, found.prediction.request
    if pools is None:
        return []
    lines = []
    for name, pool in (("prefill", pools.prefill), ("decode", pools.decode)):
        kept = (
            ""
            if pool.requests_per_s is None or pool.busy is None
            else f", up to {pool.requests_per_s:.3g} requests/s, {percent(pool.busy)} busy"
        )
        lines.append(f"{name + ' pool':12} {count(pool.replicas)} x {count(pool.devices // pool.replicas)} devices{kept}")
    way = f"{bytes_(pools.transfer_bytes)} in {seconds(pools.transfer_s)}"
    lines.append(f"{'first gap':12} {seconds(pools.first_gap_s)}: admission {seconds(pools.admission_s)}, transfer of {way}, a step")
    rates = per_device(pools, request.prompt_tokens, request.output_tokens)
    if rates is not None and pools.binds is not None:
        words = {name: name.replace("_per_s_over_", "/s over ").replace("_", " ") for name in rates}
        each = ", ".join(f"{words[name]} {number(value, 4)}" for name, value in rates.items())
        lines.append(f"{'per device':12} {each}")
        lines.append(f"{'binds':12} {binding_words(pools)}")
    splits = splits_of(found)
    if splits is not None:
        best = splits.best
        lines.append(
            f"{'best split':12} {best.prefill_replicas} : {best.decode_replicas} of {count(splits.devices)} devices, "
            f"{best.requests_per_s_per_device:.3g} requests/s a device"
        )
    return lines


def under_load_lines(shown: UnderLoad) -> list[str]:
    """A simulated load: TTFT with its parts, TPOT, rates, goodput where there is a target."""
    found = shown.simulation
    parts = f"front-end {seconds(found.front_end_s)} + queue {seconds(found.queue_s)} + prefill {seconds(found.prefill_s)}"
    lines = [f"simulated {count(found.load.total)} requests in {seconds(found.duration_s)}, {found.running:.3g} running on average"]
    for name, known in (("TTFT", found.ttft), ("TPOT", found.tpot)):
        if known is not None:
            stats = ", ".join(
                f"{stat} {seconds(value)}" for stat in ("mean", "p50", "p90", "p99") if (value := known.stat(stat)) is not None
            )
            lines.append(f"  {name}  {stats}")
    lines.insert(2, f"        {parts}")
    rates = f"{found.requests_per_s:.3g} requests/s, {tokens_rate(found.output_tokens_per_s, 'aggregate')}"
    held = ", ".join(f"{name} {percent(share)}" for name, share in found.held_back.items() if share > 0) or "nothing"
    lines.append(f"  {rates}; held back by {held}; {count(found.preemptions)} preemptions")
    if found.crossing is not None and (gap := found.crossing.first_gap) is not None and gap.mean is not None:
        lines.append(f"  first gap  mean {seconds(gap.mean)}, of it " + ", ".join(_gap_parts(found.crossing)))
    if shown.target != Target():
        kept = found.goodput(shown.target)
        lines.append(f"  within the target {percent(kept.share)}: {kept.requests_per_s:.3g} requests/s")
    return lines


def _gap_parts(crossing: Crossing) -> list[str]:
    return [f"{name.removesuffix('_s')} {seconds(value)}" for name, value in (crossing.mean_s() or {}).items()]


def run_line(run: dict[str, Any]) -> str:
    """One run summary as a line: format, token counts, both phases where known."""
    workload, metrics = run["workload"], run["metrics"]
    words = [run["format"], f"{count(workload['prompt_tokens_mean'])} -> {count(workload['output_tokens_mean'])} tokens"]
    for title, keys in (("first token", ("ttft_s", "prefill_s")), ("then", ("itl_s", "tpot_s"))):
        found = next((metrics[key] for key in keys if metrics.get(key)), None)
        value = None if found is None else found["mean"] if found["mean"] is not None else found["p50"]
        if value is not None:
            words.append(f"{title} {seconds(value)}")
    return ", ".join(words)


def comparison_lines(comparison: Comparison, explained: Explained) -> list[str]:
    """The sentence, the causes, every statistic that both sides have, and the change of a mean request split by phase."""
    found = explained.diagnosis
    lines = [comparison_sentence(comparison, found), *because(found), *diagnosis_lines(explained)]
    for row in comparison.metrics:
        if row.base is not None and row.other is not None and row.ratio is not None:
            figures = f"{number(row.base, 4):>12} -> {number(row.other, 4):>12} {factor(row.ratio):>8}"
            lines.append(f"  {row.key + '.' + row.stat:32} {figures}  {row.verdict}")
    if comparison.attribution is not None:
        lines += [f"  {text}" for text in attribution_sentences(comparison.attribution)]
    return lines


def diagnosis_lines(explained: Explained) -> list[str]:
    """Each offered cause with its evidence, what would refute it and what it advises; then what is ruled out."""
    found = explained.diagnosis
    lines = []
    for each in found.findings:
        lines.append(f"  {each.rank}. {each.rule.title} ({each.rule.id}, {each.rule.phase}, {each.signs} of {each.of} signs)")
        lines += [f"     {text}" for text in (*each.sums, *each.evidence)]
        lines.append(f"     refuted if {each.rule.refuted_by}")
        if each.missing:
            lines.append(f"     not known: {', '.join(each.missing)}")
        if each.rule.levers:
            lines.append(f"     levers: {', '.join(advice.lever.replace('_', ' ') for advice in each.rule.levers)}")
    lines += [f"  ruled out: {each.rule.title}. {' '.join(each.against)}" for each in found.ruled_out]
    return lines


def reading_lines(report: Mapping[str, Any]) -> list[str]:
    """Files read again: one line each, one for each run that is not the same, and one for each thing that changed in it."""
    lines = []
    for file in report["files"]:
        if file["refused"] is not None:
            continue
        verb = "read again" if file["applied"] else "would be read again"
        lines.append(f"{file['file']}: {verb}, {file['format']}, version {file['from_version']} to {file['to_version']}")
        for run in file["runs"]:
            name = run["title"] if run["id"] is None else f"run {run['id']} {run['title']}"
            lines.append(f"  {name}: {run['outcome']}")
            for change in run["changes"]:
                lines.append(f"    {change['part']} {change['key']}: {_plain(change['old'])} -> {_plain(change['new'])}")
    return lines


def _plain(value: object) -> str:
    return "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
