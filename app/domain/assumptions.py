"""What a prediction takes for granted, one sentence each: the reader sees which figures are specified, fitted, assumed or left out."""

from math import ceil

from app.domain.constants import default
from app.domain.dtypes import NumberFormat, arithmetic
from app.domain.engine import EngineProfile
from app.domain.hardware import HardwareProfile
from app.domain.memory import Footprint
from app.domain.phases import PricedRequest, Question
from app.domain.prediction import Request, Term
from app.domain.quantity import byte_rate, flops_rate, percent, seconds
from app.domain.rates import Formats, Rates
from app.domain.under_load import in_waves, left_over_s, looked_for_after

_USUAL_NODE = 8  # devices that servers usually join by their own link


def sentences(
    question: Question, request: Request, engine: EngineProfile | None, priced: PricedRequest, beside: Term | None
) -> tuple[str, ...]:
    """Every assumption behind one prediction, in the order in which it matters. `beside` is set in textbook mode only."""
    model, hardware, formats, rates = question.architecture, question.hardware, question.formats, question.rates
    if beside is not None:
        said = _textbook(question, request, priced, beside)
    else:
        said = [
            *_engine(engine, formats.weight, request.prefill_replicas is not None),
            *_device(hardware, rates, engine, formats.weight),
            *_operators(request, formats),
            *_layers(question, request),
            *_served(request, question, priced),
            *_pools(request, question),
        ]
    said.extend(_memory(hardware, request, priced.footprint, float(priced.together)))
    if beside is None and model.declared_parameters is not None:
        said.append(f"Passes are priced from the shapes ({model.shape_parameters:.4g} parameters), not from the declared round figure.")
    positions = request.prompt_tokens + request.output_tokens
    if model.max_positions is not None and positions > model.max_positions:
        said.append(f"Prompt and output ({positions} tokens) are longer than the {model.max_positions} positions that this model declares.")
    if request.output_tokens == 1:
        said.append("One output token comes out of prefill alone; the decode step shown is what a second token would take.")
    return tuple(dict.fromkeys((*said, *rates.assumptions, *model.notes)))


def _textbook(question: Question, request: Request, priced: PricedRequest, beside: Term) -> list[str]:
    model, weight, rates = question.architecture, question.formats.weight, question.rates
    said = [
        "Textbook arithmetic: dense weights only, two FLOPs per parameter and token and one read of the weights per pass; "
        "KV cache, activations, launches, front-end and queue are left out.",
        f"{question.hardware.name} is taken at {flops_rate(float(rates.achieved_flops_per_s))} "
        f"and {byte_rate(float(rates.achieved_bytes_per_s))}.",
        f"Causal attention would add {seconds(beside.time_s)} to prefill, {percent(beside.flops / float(priced.prefill.flops))} of the "
        "arithmetic of the weights; it is shown beside these figures and not added to them.",
    ]
    if weight.bytes != weight.payload_bytes:
        said.append(f"{weight.payload_bytes:g} bytes per weight are read; the scales of {weight.key} are left out.")
    if model.expert_layers:
        said.append("Of the experts those are counted that a token goes through, and read that the tokens of a pass are expected to touch.")
    if model.active_parameters != model.decode_weight_parameters:
        said.append("All parameters are counted, the input embedding table too, although a pass only looks rows up in it.")
    if request.tp > 1 or request.pp > 1:
        said.append("Communication between devices is left out.")
    if request.engine is not None:
        said.append("The engine plays no part in textbook arithmetic.")
    return said


def _engine(engine: EngineProfile | None, weight: NumberFormat, pools: bool) -> list[str]:
    itl, ttft = default("unknown_engine_itl_factor"), default("unknown_engine_ttft_factor")
    band = f"the ranges are a factor {itl:g} on ITL and {ttft:g} on TTFT"
    if engine is None:
        return [f"No engine profile: launch, scheduler and front-end times are defaults, and {band}."]
    which = f", {engine.choice}" if engine.choice else ""
    said = [f"Efficiencies and fixed times are those of the engine profile {engine.name}{which}; the ranges are its 90 % band."]
    if engine.calibration is not None:
        told = "the ranges are twice its cross-validated error, at least 7 %"
        said = [f"Calibration {engine.calibration} scales the rates of {engine.name}; {told}."]
        if engine.remainder is not None and not pools:
            said.append(
                "What its factors leave at its runs is carried over from those near this question; a simulation has the factors alone."
            )
        return said
    if engine.itl_range is None or engine.ttft_range is None:
        said = [f"The profile of {engine.name} has no error band of its own: where it is missing, {band}."]
    if engine.weight_efficiency(weight) is None:
        said.append(
            f"{engine.name} has no bandwidth efficiency for {weight.key} weights in its profile: the device's or the default is taken."
        )
    if engine.compute_factor(weight) is None:
        said.append(
            f"{engine.name} has no compute efficiency for {weight.key} weights in its profile: the device's or the default is taken."
        )
    return said


def _device(hardware: HardwareProfile, rates: Rates, engine: EngineProfile | None, weight: NumberFormat) -> list[str]:
    said = []
    if not hardware.compute_efficiency:
        said.append(
            f"No fitted compute efficiency for {hardware.name}: {rates.gemm_efficiency:.2g} of its {rates.gemm.format} peak is taken."
        )
    of_engine = engine is not None and engine.weight_efficiency(weight) is not None
    if hardware.bandwidth_efficiency is None and not of_engine:
        said.append(f"No fitted bandwidth efficiency for {hardware.name}: {rates.weight_efficiency:.2g} of its bandwidth is taken.")
    return said


def _operators(request: Request, formats: Formats) -> list[str]:
    said = []
    product = arithmetic(formats.weight, formats.activation)
    if formats.weight.quantises_activations and product.quantises_activations:
        said.append(f"Activations are quantised to {product.wanted} before each product where the device computes in it.")
    if formats.weight.tables_at_16_bit:
        said.append(f"The input table and the output matrix stay at 16 bit, as checkpoints in {formats.weight.key} keep them.")
    elif formats.weight.bytes < 2:
        said.append(
            f"The output matrix is counted at {formats.weight.key} like every other weight; checkpoints that keep it at 16 bit read more."
        )
    if request.cached_prefix_tokens:
        said.append(f"The {request.cached_prefix_tokens} cached tokens are in memory before the request and are only read.")
    return said


def _layers(question: Question, request: Request) -> list[str]:
    """What is taken for granted about experts, indexers, states and the way they are spread over devices."""
    model, formats, rates = question.architecture, question.formats, question.rates
    said = []
    if model.expert_layers:
        said.append("Experts are chosen evenly: a pass reads the distinct ones that its tokens are expected to touch.")
        if request.ep > 1:
            said.append(f"Of the {request.ep} ranks with experts of their own the busiest sets the pace.")
        if request.moe_dtype is None and formats.experts is not None:
            said.append(
                f"Only the experts are kept as {formats.expert.key}, as checkpoints of this kind are; all other weights stay at "
                f"{formats.weight.key}. Set moe_dtype to price another split."
            )
        if rates.expert_units.format != rates.gemm.format:
            said.append(f"Expert products are computed at the {rates.expert_units.format} rate, the others at {rates.gemm.format}.")
    if model.layers_that_see("top"):
        said.append("Sparse attention reads the chosen positions and an 8-bit index of all of them.")
    if model.recurrent_layers:
        said.append("Recurrent states are read and written in 32 bits once a pass for each sequence.")
    if request.dp > 1:
        said.append(f"{request.dp} attention ranks share the sequences; each holds all attention weights.")
    devices = request.tp * request.dp * request.pp
    if devices > _USUAL_NODE and question.hardware.devices_per_node is None:
        said.append(
            f"{question.hardware.link_name or 'The link'} is taken to join all {devices} devices; a network between nodes would be slower "
            "(set devices_per_node and network_bytes_per_s of the device)."
        )
    return said


def _served(request: Request, question: Question, priced: PricedRequest) -> list[str]:
    said = []
    if request.open_loop:
        share = question.rates.interference
        said.append("Requests come at their own moments (Poisson); the queue in TTFT is the closed form's mean while the server keeps up.")
        said += _known_late(question, priced)
        said.append(f"Other requests' prefills fall between two tokens, at {share:g} of their cost (closed form).")
    elif request.concurrency is not None and request.concurrency > 1:
        lengths = f"lengths are drawn between {request.shortest_length:g} and 1 of these"
        if request.shortest_length == 1:
            apart = float(question.rates.serial_front_end_s) > 0 and not question.schedule.alone
            lengths = "lengths are equal" + (", and the front-end draws clients apart" if apart else ", so clients stay together in waves")
        rounds = f"{request.requests_per_client} requests a client, the burst at the start among them"
        said.append(f"The queue in TTFT is the closed form's mean over {rounds}; {lengths}.")
        if request.prefill_replicas is None and not float(in_waves(question.load, question.schedule)):
            said += _known_late(question, priced)
        answer = request.output_tokens * float(priced.itl_s)
        waits = float(left_over_s(question.load, question.schedule, request.concurrency, answer))
        if waits > 0 and request.prefill_replicas is None:
            said.append(
                f"One client of a wave of equal requests waits for the next, as measured with such engines: {seconds(waits)} of TTFT on "
                "average; give shortest_length below 1 where answers differ in length."
            )
        if request.prefill_replicas is not None:
            said.append("No prompt falls between two tokens: prefill has devices of its own.")
        elif float(in_waves(question.load, question.schedule)):
            said.append("Prefill runs alone and all requests are equally long: only the later prompts of a wave fall between two tokens.")
        else:
            share = question.rates.interference
            said.append(f"Other requests' prefills fall between two tokens, at {share:g} of their cost (closed form).")
    if request.draft_tokens:
        brings = f"brings {float(priced.accepted):.3g}"
        said.append(f"A decode step verifies {request.draft_tokens} drafted tokens and {brings}; making the draft costs nothing here.")
    if request.pp > 1:
        said.append(f"A sequence passes the {request.pp} pipeline stages one after another; FLOPs and bytes are those of all stages.")
    return said


def _known_late(question: Question, priced: PricedRequest) -> list[str]:
    looks = float(looked_for_after(question.load, question.rates, priced.running))
    if looks <= default("admission_steps"):
        return []
    until = seconds(looks * float(priced.decode.time_s))
    return [f"The scheduler looks for new requests when {looks:.3g} decode steps have passed on average: {until} of TTFT."]


def _pools(request: Request, question: Question) -> list[str]:
    """What is taken for granted about pools of their own and the way between them."""
    if request.prefill_replicas is None:
        return []
    load = question.load
    ahead = load.in_prefill()
    devices = int((request.prefill_replicas * ahead.tp * ahead.dp + load.decode_replicas * load.tp * load.dp) * load.pp)
    said = [
        "The prompt's cache crosses as a whole once prefill has made the first token and a decode replica has room for it; "
        "layers that are sent while others are still computed would hide some of that."
    ]
    node = question.hardware.devices_per_node
    if request.transfer_bytes_per_s is None and (node is None or devices <= node):
        share, link = default("bus_share_of_link"), question.hardware.link_name or "the device's link"
        said.append(
            f"All {devices} devices are taken to be joined by {link}, {percent(share, 0)} of whose rate each reaches; give "
            "transfer_bytes_per_s where the pools are joined by a network."
        )
    return said


def _memory(hardware: HardwareProfile, request: Request, space: Footprint, running: float) -> list[str]:
    if space.capacity_bytes is None:
        return [f"The memory of {hardware.name} is not known, so whether the request fits is not known either."]
    kept = f"{percent(default('memory_kept_for_runtime'), 0)} of the device's memory is kept for the runtime"
    pool = space.memory().max_batch or 0
    if pool == 0:
        return [f"Weights and one sequence do not fit in memory ({kept}); the times are what they would be if they did."]
    wanted = request.batch if request.concurrency is None else request.concurrency
    if request.prefill_replicas is not None and request.concurrency is not None:
        wanted = ceil(request.concurrency / request.decode_replicas)
        if pool < wanted:
            return [
                f"{int(running)} of {wanted} sequences run on average on a decode replica: {pool} fit at their full length ({kept}), more "
                "while they grow; the others wait between their first and their second token, and once the prefill pool is full before it."
            ]
    if pool >= wanted:
        return [f"Fit is judged at the full length of every sequence; {kept}."]
    if request.concurrency is None:
        return [f"{wanted} sequences do not fit in memory, {pool} do ({kept}); the times are what they would be if they did."]
    return [
        f"{int(running)} of {wanted} sequences run on average: {pool} fit in memory at their full length ({kept}), more while they grow; "
        "the others wait, which is in the queue of TTFT."
    ]
