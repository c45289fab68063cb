"""/hardware: every device, one device, and adding, cloning, editing, deleting one's own."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.errors import InvalidRequest, PhaselineError
from app.domain.hardware import HardwareProfile
from app.pages.calibrations import device_values
from app.pages.rendering import page_context, render
from app.services import profiles
from app.services.profile_json import RATE_FORMATS

router = APIRouter(prefix="/hardware")

# Field of the form -> key of the profile and what one unit of the form is in SI.
_SCALED = {
    "memory_gb": ("memory_bytes", 1e9),
    "bandwidth_gb_per_s": ("bandwidth_bytes_per_s", 1e9),
    "achieved_bandwidth_gb_per_s": ("achieved_bandwidth_bytes_per_s", 1e9),
    "link_gb_per_s": ("link_bytes_per_s", 1e9),
    "devices_per_node": ("devices_per_node", 1.0),
    "network_gb_per_s": ("network_bytes_per_s", 1e9),
    "tdp_w": ("tdp_w", 1.0),
}
_TEXTS = ("name", "vendor", "link_name", "notes")
_TERA = 1e12
_FIELD_OF = {
    **{key: name for name, (key, _) in _SCALED.items()},
    "peak_flops_per_s": "peak_bf16",
    "achieved_flops_per_s": "achieved_bf16",
}


@router.get("")
def hardware_list(request: Request) -> Response:
    """Every device, users' own first; `q` narrows by words."""
    book = profiles.read_book(page_context(request))
    words = request.query_params.get("q", "").lower().split()
    devices = [
        (origin, item) for origin, item in book.all_hardware() if all(w in f"{item.name} {item.vendor} {item.slug}".lower() for w in words)
    ]
    values = {"devices": devices, "total": len(book.all_hardware()), "q": request.query_params.get("q", "")}
    return render(request, "pages/hardware_list.html", values, block="results")


@router.get("/new")
def new_hardware(request: Request) -> Response:
    """An empty form, or one filled from the device to clone."""
    clone_of = request.query_params.get("clone_of", "")
    values: dict[str, str] = {}
    if clone_of:
        base = profiles.find_hardware(profiles.read_book(page_context(request)), clone_of)
        values = {**_texts(base), "name": f"{base.name} copy"}
    return _form(request, values, {}, clone_of=clone_of)


@router.post("/new")
async def post_new_hardware(request: Request) -> Response:
    """Store a device."""
    values = await _fields(request)
    clone_of = values.get("clone_of", "")
    try:
        draft = _draft(values)
        profile = await run_in_threadpool(
            profiles.create_hardware, page_context(request), {**draft, "clone_of": clone_of} if clone_of else draft
        )
    except PhaselineError as error:
        return _form(request, values, {_field(error): str(error)}, clone_of=clone_of)
    return _to(request, f"/hardware/{profile.slug}")


@router.get("/{slug}")
def hardware_page(request: Request, slug: str) -> Response:
    """One device with each figure's label and source."""
    return render(request, "pages/hardware.html", device_values(request, slug))


@router.get("/{slug}/edit")
def edit_hardware(request: Request, slug: str) -> Response:
    """The form of a device of one's own."""
    profile = profiles.find_hardware(profiles.read_book(page_context(request)), slug)
    return _form(request, _texts(profile), {}, slug=slug)


@router.post("/{slug}/edit")
async def post_edit_hardware(request: Request, slug: str) -> Response:
    """Store the changes."""
    values = await _fields(request)
    try:
        await run_in_threadpool(profiles.update_hardware, page_context(request), slug, _draft(values))
    except InvalidRequest as error:
        return _form(request, values, {_field(error): str(error)}, slug=slug)
    return _to(request, f"/hardware/{slug}")


@router.post("/{slug}/delete")
def post_delete_hardware(request: Request, slug: str) -> Response:
    """Delete a device of one's own."""
    profiles.delete_hardware(page_context(request), slug)
    return _to(request, "/hardware")


def _to(request: Request, path: str) -> Response:
    return RedirectResponse(request.scope.get("root_path", "") + path, status_code=303)


async def _fields(request: Request) -> dict[str, str]:
    async with request.form() as form:
        return {key: value.strip() for key, value in form.items() if isinstance(value, str)}


def _field(error: PhaselineError) -> str:
    """The field of the form that an error is about: the form has its own units, so most keys have another name here."""
    if not isinstance(error, InvalidRequest):
        return "name"
    return _FIELD_OF.get(error.field, error.field)


def _draft(values: Mapping[str, str]) -> dict[str, Any]:
    """The form's figures in SI units. Raises InvalidRequest naming the field that is no number."""
    draft: dict[str, Any] = {key: values[key] for key in _TEXTS if key in values}
    for name, (key, unit) in _SCALED.items():
        if name in values:
            number = _number(values[name], name)
            draft[key] = None if number is None else number * unit
    for kind in ("peak", "achieved"):
        rates = {dtype: _number(values.get(f"{kind}_{dtype}", ""), f"{kind}_{dtype}") for dtype in RATE_FORMATS}
        draft[f"{kind}_flops_per_s"] = {dtype: rate * _TERA for dtype, rate in rates.items() if rate is not None}
    return draft


def _number(text: str, name: str) -> float | None:
    if not text:
        return None
    try:
        return float(text.replace(",", ""))
    except ValueError as error:
        raise InvalidRequest(name, f"{name.replace('_', ' ')} must be a number, such as 3350 or 989.5.") from error


def _texts(profile: HardwareProfile) -> dict[str, str]:
    """A profile as the form shows it."""
    texts = {key: str(getattr(profile, key) or "") for key in _TEXTS}
    for name, (key, unit) in _SCALED.items():
        value = getattr(profile, key)
        texts[name] = "" if value is None else f"{value / unit:.12g}"
    for kind, rates in (("peak", profile.peak_flops_per_s), ("achieved", profile.achieved_flops_per_s)):
        texts |= {f"{kind}_{dtype}": f"{rate / _TERA:.12g}" for dtype, rate in rates.items()}
    return texts


def _form(request: Request, values: Mapping[str, str], errors: Mapping[str, str], slug: str = "", clone_of: str = "") -> Response:
    shown = {"values": values, "errors": errors, "slug": slug, "clone_of": clone_of, "formats": RATE_FORMATS}
    return render(request, "pages/hardware_edit.html", shown, status=422 if errors else 200)
