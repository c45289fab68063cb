"""/webhooks: registered targets, and what became of what they were told."""

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.errors import PhaselineError
from app.domain.webhooks import EVENTS, MOST_ATTEMPTS
from app.pages.rendering import page_context, render
from app.pages.runs import RunId
from app.services import webhooks

router = APIRouter(prefix="/webhooks")


@router.get("")
def webhooks_page(request: Request) -> Response:
    """Targets, the form for another one, and the last deliveries."""
    return render(request, "pages/webhooks.html", _values(request))


@router.post("")
async def post_webhook(request: Request) -> Response:
    """Register a target. Its secret stands on the answer, and on no page after it."""
    async with request.form() as form:
        asked = {key: str(form.get(key, "")).strip()[:2000] for key in ("url", "name", "networks")}
        events = [str(value) for value in form.getlist("events")][:10]
    networks = asked["networks"].replace(",", " ").split()
    try:
        made = await run_in_threadpool(
            webhooks.register, page_context(request), asked["url"], asked["name"], events, networks, datetime.now(UTC)
        )
    except PhaselineError as error:
        values = await run_in_threadpool(_values, request)
        return render(request, "pages/webhooks.html", {**values, "asked": {**asked, "events": events}, "problem": str(error)}, status=422)
    values = await run_in_threadpool(_values, request)
    return render(request, "pages/webhooks.html", {**values, "made": made}, status=201)


@router.post("/{number}/ping")
def post_ping(request: Request, number: RunId) -> Response:
    """Send a test."""
    webhooks.ping(page_context(request), number, datetime.now(UTC))
    return _back(request)


@router.post("/{number}/delete")
def post_delete(request: Request, number: RunId) -> Response:
    """Delete a target."""
    webhooks.forget(page_context(request), number)
    return _back(request)


def _back(request: Request) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}/webhooks", status_code=303)


def _values(request: Request) -> dict[str, Any]:
    context = page_context(request)
    targets = webhooks.every(context)
    return {
        "targets": targets,
        "named": {each.id: each.name for each in targets},
        "deliveries": webhooks.deliveries(context, None),
        "events": EVENTS,
        "most_attempts": MOST_ATTEMPTS,
        "asked": {"url": "", "name": "", "networks": "", "events": list(EVENTS)},
        "problem": "",
        "made": None,
    }
