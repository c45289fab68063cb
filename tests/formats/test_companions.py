"""Files that belong to a run are refused with what they are and what to send, whatever tool's name stands in them."""

import json
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.formats import read_runs
from app.formats.companions import COMPANIONS, companion_of
from app.formats.document import read_document
from tests.formats.damage import FORMATS, files_of

SLICE = {"timeslice_index": 0, "request_latency": {"unit": "ms", "avg": 12.0}}
FILES: dict[str, Any] = {
    "figures by time slice": {"timeslices": [SLICE], "input_config": {}, "aiperf_version": "0.8.0"},
    "time slice": {"timeslices": [{"start_ns": 1, "end_ns": 2}]},
    "the server's metrics": {
        "schema_version": "1.0",
        "aiperf_version": "0.8.0",
        "summary": {"endpoints_configured": ["http://a/metrics"]},
        "metrics": {"vllm:num_requests_running": {"type": "gauge", "series": []}},
    },
    "metrics that AIPerf scraped": {"endpoint_url": "http://a/metrics", "timestamp_ns": 1, "metrics": {}},
    "of the server or its GPUs": {"summary": {"endpoints_configured": []}, "endpoints": {}},
    "GPU telemetry": {"timestamp_ns": 1, "dcgm_url": "http://a", "gpu_index": 0, "telemetry_data": {"gpu_power_usage": 300.0}},
    "prompts": {"data": [{"session_id": "a", "payloads": [{"messages": []}]}]},
}
TABLES = {
    "by time slice": b'"Timeslice","Metric","Unit","Stat","Value"\n0,Request Latency,ms,avg,12.0\n',
    "the server's metrics": b"Endpoint,Type,Metric,Unit,avg,min,max\nhttp://a/metrics,gauge,vllm:num_requests_running,,1,0,2\n",
}


@pytest.mark.parametrize("words", FILES)
def test_a_file_that_belongs_to_a_run_is_named(words: str) -> None:
    refused(json.dumps(FILES[words]).encode(), words)


@pytest.mark.parametrize("words", TABLES)
def test_so_is_a_table(words: str) -> None:
    refused(TABLES[words], words)


def refused(data: bytes, words: str) -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x", data)
    assert words in refusal.value.reason
    assert "belong to a run and are none by themselves: send profile_export_aiperf.json" in refusal.value.reason


def test_each_kind_has_an_example() -> None:
    found = {
        companion_of(read_document("", data)) for data in (*(json.dumps(value).encode() for value in FILES.values()), *TABLES.values())
    }
    assert found == set(COMPANIONS)


@pytest.mark.parametrize("format_id", FORMATS)
def test_no_result_is_taken_for_one(format_id: str) -> None:
    assert [companion_of(read_document("", data)) for data in files_of(format_id)] == [None] * len(files_of(format_id))
