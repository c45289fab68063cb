"""/glossary: every metric's definition, from the registry."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.domain.metrics import METRICS
from app.pages.rendering import render

router = APIRouter()

TERMS = (
    ("Floor", "The time that the specified peak rates allow and nothing can beat: bytes divided by bandwidth, or FLOPs divided by FLOP/s."),
    ("Attainable", "The same at the rates that the device has been seen to reach."),
    ("Expected", "The prediction: achieved rates with launches, scheduling and communication added."),
    ("Ridge", "The work per byte at which arithmetic and memory take equally long: FLOP/s divided by bandwidth."),
    ("MFU", "Model FLOP/s utilisation: the share of the specified peak that the prompt pass used. Not what the driver calls utilisation."),
    (
        "MBU",
        "Model bandwidth utilisation: the share of the specified bandwidth that decoding used. Above 100 % it is withheld: "
        "several tokens shared a read, or something is not what it seems.",
    ),
    ("Intensity", "Arithmetic per byte moved, FLOP/byte. At 2 bytes per weight it is the number of tokens in the pass."),
    (
        "Two rates",
        "Tokens of the prompt pass together, tokens of the answer one after another: 2,000 in 95 ms is 21,100 tokens/s, 143 tokens/s in "
        "decode is 147 times less, both per request, for about the same arithmetic a token.",
    ),
    ("Batch", "Sequences in one pass of the device. Not the number of clients, which is concurrency."),
    ("Scope", "Whose rate: one request's, the whole deployment's (aggregate), or one device's. A rate without it is not quoted."),
    (
        "Percentile",
        "By linear interpolation between closest ranks over the requests that succeeded, with their number n beside it. Where a file has "
        "no samples its own percentiles stand: trtllm-bench takes the nearest rank, GuideLLM a step; those are not compared with others.",
    ),
    (
        "From",
        "samples: computed here from raw samples. reported: the file's own figure. derived: from other figures, by these definitions.",
    ),
)


@router.get("/glossary")
def glossary_page(request: Request) -> Response:
    """The registry as a page; each metric has an anchor."""
    return render(request, "pages/glossary.html", {"metrics": list(METRICS.values()), "terms": TERMS})
