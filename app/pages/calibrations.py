"""The calibrations of a device, on its page: what was fitted, before and after, and fitting anew."""

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.calibration import MEASURE, TITLES
from app.domain.errors import PhaselineError
from app.domain.serving import MODEL_VERSION
from app.pages.rendering import page_context, render
from app.services import calibrating, profiles
from app.services.profile_json import RATE_FORMATS
from app.services.telling_points import telling_points

router = APIRouter(prefix="/hardware")


def device_values(request: Request, slug: str, refused: str | None = None, asked: dict[str, str] | None = None) -> dict[str, Any]:
    """What the page of a device shows. `refused` is why nothing was fitted for what was `asked`."""
    context = page_context(request)
    book = profiles.read_book(context)
    profile = profiles.find_hardware(book, slug)
    return {
        "device": profile,
        "origin": book.hardware_origin(slug),
        "formats": RATE_FORMATS,
        "calibrations": [item for item in book.calibrations.values() if item.hardware_slug == profile.slug],
        "engines": [(item.slug, item.name) for item in book.catalog.engines.values()],
        "titles": TITLES,
        "measure": MEASURE,
        "telling": telling_points(),
        "model_version": MODEL_VERSION,
        "refused": refused,
        "asked": asked or {"engine": "", "weight_dtype": ""},
    }


@router.post("/{slug}/calibrate")
async def post_calibration(request: Request, slug: str) -> Response:
    """Fit the scalars of this device with an engine; a refusal is shown with its reason."""
    async with request.form() as form:
        asked = {key: str(form.get(key, "")).strip()[:100] for key in ("engine", "weight_dtype")}
    try:
        await run_in_threadpool(
            calibrating.calibrate, page_context(request), slug, asked["engine"] or None, asked["weight_dtype"] or None, datetime.now(UTC)
        )
    except PhaselineError as error:
        values = await run_in_threadpool(device_values, request, slug, str(error), asked)
        return render(request, "pages/hardware.html", values, status=422)
    return _to(request, slug)


@router.post("/{slug}/calibrations/{number}/delete")
def post_delete_calibration(request: Request, slug: str, number: int) -> Response:
    """Delete one."""
    calibrating.forget(page_context(request), number)
    return _to(request, slug)


def _to(request: Request, slug: str) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}/hardware/{slug}#calibrations", status_code=303)
