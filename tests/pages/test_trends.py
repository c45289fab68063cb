"""The pages of trends: the index, a series with both phases, and what people say."""

from fastapi.testclient import TestClient

from tests.answers import API, ok
from tests.result_files import data_of, served


def stored(client: TestClient, itl_ms: float, **fields: str) -> int:
    data = data_of(served(mean_tpot_ms=itl_ms, mean_itl_ms=itl_ms, mean_e2el_ms=50 + 50 * itl_ms))
    sent = client.post(f"{API}/runs", files={"file": ("a.json", data)}, data={"hardware": "l40s", **fields})
    number: int = ok(sent, 201)["runs"][0]["id"]
    return number


def test_without_runs_the_page_says_what_would_be_here(client: TestClient) -> None:
    page = client.get("/trends").text
    assert "No series yet" in page
    client.post(f"{API}/runs", content=data_of(served()))
    assert "1 stored runs do not say them" in " ".join(client.get("/trends").text.split())


def test_from_the_index_to_a_series_to_a_run(client: TestClient) -> None:
    runs = [stored(client, itl) for itl in (10.0, 10.1, 9.9, 12.0)]
    page = client.get("/trends").text
    assert "never compared" in page
    client.post(f"/runs/{runs[0]}/baseline")
    page = client.get("/trends").text
    assert "1 of 1 series regressed" in page
    assert "decode regressed" in page
    # TTFT is 50 ms in both, ITL 12 ms beside 10.
    cells = page.replace("\xa0", " ")
    assert '<td class="n">±0.0 %</td><td class="n">+20.0 %</td>' in cells
    landed = client.get(f"/runs/{runs[3]}/trend")
    assert landed.status_code == 200
    text = " ".join(landed.text.split())
    assert text.index("Prefill: TTFT mean") < text.index("Decode: ITL mean") < text.index("Whole request mean")
    assert f"/compare?base={runs[0]}&amp;other={runs[3]}" in landed.text
    assert landed.text.count('data-chart="trend"') == 3
    assert f'name="run" value="{runs[2]}"' in landed.text


def test_what_happened_is_written_and_taken_back(client: TestClient) -> None:
    first, second = stored(client, 10.0), stored(client, 10.2, tp="2")
    assert "Tensor parallel not known → 2" in client.get(f"/runs/{first}/trend").text
    client.post(f"/runs/{second}/annotations", data={"text": "<b>driver</b> 580"})
    page = client.get(f"/runs/{first}/trend").text
    assert "&lt;b&gt;driver&lt;/b&gt; 580" in page
    (note,) = ok(client.get(f"{API}/annotations"))["items"]
    client.post(f"/runs/{second}/annotations/{note['id']}/delete")
    assert "driver" not in client.get(f"/runs/{first}/trend").text.replace("driver 570 to 580", "")


def test_addresses_that_name_no_series(client: TestClient) -> None:
    number = ok(client.post(f"{API}/runs", content=data_of(served())), 201)["runs"][0]["id"]
    assert client.get(f"/runs/{number}/trend").status_code == 422
    assert client.get("/trends/series").status_code == 422
    assert client.get("/trends/series?model=a&hardware=b&engine=c").status_code == 404
    assert client.get("/trends/series?model=a&hardware=b&engine=c&prompt_tokens=x").status_code == 422
    assert client.get("/trends/series?model=a&hardware=b&engine=c&prompt_tokens=nan").status_code == 422
