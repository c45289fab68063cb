"""/learn: why the two halves of a request differ, in seven chapters; every figure is worked out here by the cost model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.domain.errors import InvalidRequest
from app.domain.prediction import Prediction
from app.domain.prediction import Request as Asked
from app.domain.serving import attention_flops_textbook, predict
from app.pages.rendering import page_context, render
from app.services.profiles import ProfileBook, find_hardware, find_model, read_book

router = APIRouter()

MODEL, DEVICE = "textbook-8b", "textbook-h100"
# The founding text's measured run: 95 ms to the first token, then 143 tokens a second.
MEASURED_TTFT_S, MEASURED_RATE_PER_S = 0.095, 143.0
MOST_TOKENS = 10_000
CHAPTERS: tuple[tuple[str, str], ...] = (
    ("two-halves", "One request, two halves"),
    ("two-bills", "A pass has two bills"),
    ("ridge", "Where the ridge lies"),
    ("batch", "What a batch buys"),
    ("cache", "What the cache keeps"),
    ("two-rates", "One number is two rates"),
    ("one-timing", "When one timing tells nothing"),
)
# Where a cause of the diagnosis is explained; every word of the vocabulary has its chapter.
CHAPTER_OF_CAUSE: Mapping[str, str] = {
    "all_experts_read": "two-bills",
    "batch_not_amortised": "batch",
    "chunked_prefill_budget": "one-timing",
    "client_host_slow": "one-timing",
    "compute_bound": "ridge",
    "cpu_offload": "two-bills",
    "cuda_graph_ceiling": "batch",
    "decode_kernel": "two-bills",
    "dequant_compute_at_large_batch": "ridge",
    "dequant_in_prefill": "ridge",
    "dequantised_copies": "two-bills",
    "eager_mode": "one-timing",
    "fixed_step_overhead": "one-timing",
    "host_side_sampling": "one-timing",
    "idle_power_state": "one-timing",
    "kv_capacity": "cache",
    "kv_quantisation_cost_in_prefill": "cache",
    "lora_kernels": "one-timing",
    "memory_bandwidth": "two-bills",
    "missing_kernel_support": "ridge",
    "paging_or_fallback": "two-bills",
    "power_cap": "ridge",
    "preemption": "cache",
    "prefill_interference": "batch",
    "prefill_kernel": "two-halves",
    "prefill_on_cpu": "two-halves",
    "prefill_scheduling": "two-halves",
    "running_sequence_cap": "batch",
    "scheduling_or_admission": "one-timing",
    "tp_communication": "two-halves",
    "tp_fixed_cost": "two-halves",
    "wrong_device_or_offload": "two-bills",
}


@dataclass(frozen=True)
class Pass:
    """A pass that carries `tokens`, one of each sequence: seconds of its reads and of its arithmetic."""

    tokens: int
    read_s: float
    multiply_s: float

    @property
    def time_s(self) -> float:
        """The larger of the two bills."""
        return max(self.read_s, self.multiply_s)

    @property
    def busy(self) -> float:
        """Share of the pass in which there is arithmetic to do."""
        return self.multiply_s / self.time_s

    @property
    def tokens_per_s(self) -> float:
        """Tokens of all sequences together."""
        return self.tokens / self.time_s


@dataclass(frozen=True)
class Lesson:
    """The figures of the page: the founding request, what a change does to it, and passes that carry more."""

    request: Prediction
    faster_memory: Prediction
    four_bits: Prediction
    long_prompt: Prediction
    attention_share: Mapping[int, float]
    chosen: Pass
    passes: tuple[Pass, ...]
    kv_bytes: float
    measured_total_s: float


@router.get("/learn")
def learn_page(request: Request, tokens: str = "") -> Response:
    """Seven chapters with their figures; `tokens` is how many the pass of the second one carries."""
    book = read_book(page_context(request))
    carried, problem = 32, ""
    try:
        carried = _carried(tokens) if tokens else carried
    except InvalidRequest as error:
        problem = str(error)
    values = {
        "lesson": lesson(book, carried),
        "chapters": CHAPTERS,
        "problem": problem,
        "measured_ttft_s": MEASURED_TTFT_S,
        "measured_rate_per_s": MEASURED_RATE_PER_S,
    }
    return render(request, "pages/learn.html", values, status=422 if problem else 200)


def _carried(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_TOKENS):
        raise InvalidRequest("tokens", f"tokens must be a whole number from 1 to {MOST_TOKENS:,}.")
    return int(text)


def lesson(book: ProfileBook, carried: int) -> Lesson:
    """Every figure, for the textbook model on the textbook device, in textbook arithmetic."""
    model, device = find_model(book, MODEL).architecture, find_hardware(book, DEVICE)
    asked = Asked(calibration="textbook")
    found = predict(model, device, asked)

    def carrying(tokens: int) -> Pass:
        step = predict(model, device, replace(asked, batch=tokens)).decode
        return Pass(tokens, step.memory_s, step.compute_s)

    faster = replace(device, bandwidth_bytes_per_s=1.5 * device.bandwidth_bytes_per_s)
    if device.achieved_bandwidth_bytes_per_s is not None:
        faster = replace(faster, achieved_bandwidth_bytes_per_s=1.5 * device.achieved_bandwidth_bytes_per_s)
    ridge = int(found.ridge_achieved)
    lengths = (1_000, 2_000, 32_000)
    return Lesson(
        found,
        predict(model, faster, asked),
        predict(model, device, replace(asked, weight_dtype="int4")),
        predict(model, device, replace(asked, prompt_tokens=100_000, output_tokens=50)),
        {
            length: float(attention_flops_textbook(model, length, 0, 1, 1))
            / predict(model, device, replace(asked, prompt_tokens=length)).prefill.flops
            for length in lengths
        },
        carrying(carried),
        tuple(carrying(tokens) for tokens in (1, 32, ridge, 512, asked.prompt_tokens)),
        found.memory.kv_bytes_per_token * (asked.prompt_tokens + asked.output_tokens / 2),
        MEASURED_TTFT_S + (asked.output_tokens - 1) / MEASURED_RATE_PER_S,
    )
