"""A worker as the API sees it, for tests: it registers, claims and reports by hand."""

from typing import Any

from fastapi.testclient import TestClient

from tests.answers import API, ok

CPU = {"key": "cpu-test", "name": "Test CPU", "kind": "cpu", "backends": ["numpy"], "memory_bytes": 16 * 2**30}
KINDS = ["device_microbench", "inprocess_sweep", "endpoint_sweep", "llama_bench"]
MICROBENCH = {"kind": "device_microbench", "parameters": {"dtypes": ["fp32"]}}


class HandWorker:
    """Each method is one call; `headers` name its session."""

    def __init__(self, client: TestClient, name: str = "tester", *, token: str | None = None, device: dict[str, Any] | None = None) -> None:
        self.client, self.name = client, name
        self.device = device or CPU
        self.headers: dict[str, str] = {"authorization": f"Bearer {token}"} if token else {}

    def register(self, **changes: Any) -> dict[str, Any]:
        body = {"identity": self.name.ljust(40, "-"), "name": self.name, "version": "1", "kinds": KINDS, "devices": [self.device]}
        told: dict[str, Any] = ok(self.client.post(f"{API}/worker/register", json={**body, **changes}, headers=self.headers))
        self.headers["phaseline-session"] = told["session"]
        return told

    def claim(self, *, holding: list[int] | None = None, wait_s: float = 0) -> dict[str, Any] | None:
        body = {"free": [self.device["key"]], "holding": holding or [], "wait_s": wait_s}
        told: dict[str, Any] | None = ok(self.client.post(f"{API}/worker/claim", json=body, headers=self.headers))["job"]
        return told

    def post(self, job: dict[str, Any], what: str, **body: Any) -> Any:
        """A report about a job, as the raw answer."""
        path = f"{API}/worker/jobs/{job['id']}/{what}"
        return self.client.post(path, json={"attempt": job["attempt"], **body}, headers=self.headers)

    def finish(self, job: dict[str, Any], outcome: str = "succeeded", reason: str | None = None) -> Any:
        return self.post(job, "finish", outcome=outcome, reason=reason)

    def result(self, job: dict[str, Any], data: bytes, name: str = "result.json") -> Any:
        path = f"{API}/worker/jobs/{job['id']}/result"
        return self.client.post(path, params={"attempt": job["attempt"], "name": name}, content=data, headers=self.headers)
