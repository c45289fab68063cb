"""One application for all tests that only read: the sample runs, a run whose model and device nobody knows, and one that failed."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from re import DOTALL, sub

import pytest
from fastapi.testclient import TestClient

from tests.applications import served_from
from tests.result_files import served

# The series of the two sample runs that are compared.
_OF_TWO = (
    "model=llama-3-1-8b&hardware=h100-sxm5-80gb&engine=vllm&load_mode=single&measured_at=client&concurrency=1&prompt_tokens=1200"
    "&output_tokens=300"
)
PARTIAL = {"HX-Request": "true", "HX-Request-Type": "partial"}


@dataclass(frozen=True)
class Site:
    """A started application and the numbers of its runs."""

    client: TestClient
    founding: int
    bf16: int
    int4: int
    loaded: int
    long_prompt: int
    llama: int
    unknown: int
    failed: int

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every kind of page there is, with what makes each look different."""
        return (
            "/",
            "/?prompt_tokens=4000",
            "/predict",
            "/predict?prompt_tokens=100000&output_tokens=50",
            "/predict?model=llama-3-1-8b&hardware=h100-sxm5-80gb&calibration=default&concurrency=8",
            "/predict?output_tokens=1",
            "/predict/change?bandwidth_log2=1&batch_log2=3",
            "/predict/change?model=llama-3-1-8b&hardware=h100-sxm5-80gb&weight_dtype=fp32&weight_bytes_log2=1",
            "/predict/map",
            "/predict/map?model=llama-3-1-8b&hardware=h100-sxm5-80gb&calibration=default&over=context",
            "/predict/map?over=tp&show=decode",
            "/runs",
            "/runs?sort=mbu&tag=sample",
            "/runs?q=nothing-is-called-so",
            "/runs/new",
            *(f"/runs/{number}" for number in (self.founding, self.loaded, self.llama, self.unknown, self.failed)),
            f"/runs/{self.founding}/edit",
            *(f"/runs/{number}/levers" for number in (self.founding, self.loaded, self.unknown)),
            f"/runs/{self.loaded}/levers?sort=cost",
            "/trends",
            f"/trends/series?{_OF_TWO}",
            f"/trends/series?{_OF_TWO}&metric=ttft.p95",
            "/compare",
            f"/compare?base={self.bf16}&other={self.int4}",
            f"/compare?base={self.bf16}&other={self.int4}&all=1",
            f"/compare?base={self.bf16}&other={self.loaded}",
            f"/compare?base={self.bf16}&other={self.int4}&other={self.llama}&other={self.unknown}",
            "/hardware",
            "/hardware?q=h100",
            "/hardware?q=nothing-is-called-so",
            "/hardware/h100-sxm5-80gb",
            "/hardware/textbook-h100",
            "/hardware/new",
            "/hardware/new?clone_of=h100-sxm5-80gb",
            "/models",
            "/models?q=nothing-is-called-so",
            "/models/llama-3-1-8b",
            "/models/textbook-8b",
            "/models/new",
            "/models/new?clone_of=llama-3-1-8b",
            "/glossary",
            "/jobs",
            "/jobs?state=failed",
            *(f"/jobs/new?kind={kind}" for kind in ("device_microbench", "inprocess_sweep", "endpoint_sweep", "llama_bench")),
            "/jobs/workers",
            "/learn",
            "/learn?tokens=2000",
        )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Shared by the whole session: tests with it only look."""
    with served_from(tmp_path_factory.mktemp("site")) as client:
        client.post("/runs/samples", follow_redirects=False)
        by_label = {run["label"]: run["id"] for run in client.get("/api/v1/runs").json()["items"]}
        unknown = _stored(client, served(model_id="acme/unheard-of-9b"))
        failed = _stored(client, {**served(), "completed": 0, "failed": 20, "num_prompts": 20, "total_output_tokens": 0})
        yield Site(
            client,
            by_label["founding request"],
            by_label["bf16 weights"],
            by_label["int4 weights"],
            by_label["bf16, 32 clients"],
            by_label["bf16, 8 k prompt"],
            by_label["Q4_K_M on an RTX 4090"],
            unknown,
            failed,
        )


def _stored(client: TestClient, report: dict[str, object]) -> int:
    answer = client.post("/api/v1/runs", files={"file": ("report.json", json.dumps(report).encode())})
    assert answer.status_code == 201, answer.text
    number: int = answer.json()["runs"][0]["id"]
    return number


@pytest.fixture(scope="session")
def words(site: Site) -> Callable[[str], str]:
    """The words of a page as a reader sees them, in one line; no-break spaces are spaces."""
    return lambda address: words_of(site.client.get(address).text)


def words_of(html: str) -> str:
    """The words of `html`: no scripts, no tags, white space single."""
    without_scripts = sub(r"<script.*?</script>", "", html, flags=DOTALL)
    return " ".join(unescape(sub(r"<[^>]+>", " ", without_scripts)).split())
