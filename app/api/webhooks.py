"""Webhooks over HTTP: targets registered and forgotten, and what became of what they were told."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import ConfigDict, Field

from app.api.answers import StrictJSON, changes, problems
from app.api.bodies import Body, Words
from app.api.dependencies import ContextDep, Limit, Number
from app.api.shapes import Shape
from app.domain.webhooks import EVENTS
from app.services import webhooks
from app.services.webhooks import delivery_json, webhook_json

router = APIRouter(prefix="/webhooks", tags=["webhooks"])


class WebhookBody(Body):
    """A target: where, which events, and the private networks (CIDR) that its address may lie in."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        json_schema_extra={"examples": [{"url": "https://ci.example.com/hooks/phaseline", "events": ["regression", "ping"]}]},
    )

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    name: Words = ""
    events: list[Words] = Field(default=list(EVENTS), max_length=10)
    networks: list[Words] = Field(default=[], max_length=20)


class WebhookShape(Shape):
    """A registered target. `secret` is in the answer to its registration and nowhere else."""

    id: int
    name: str
    target: str
    events: list[str]
    networks: list[str]
    created_at: str


class NewWebhookShape(WebhookShape):
    """A new target with its secret, shown this once."""

    secret: str


class WebhookList(Shape):
    """Targets."""

    items: list[WebhookShape]
    next: str | None


class DeliveryList(Shape):
    """What a target was or is to be told, with attempts, last status and last problem."""

    items: list[dict[str, Any]]
    next: str | None


@router.get("", summary="Every registered target", response_model=WebhookList, responses=problems())
def get_webhooks(context: ContextDep) -> Response:
    """The one registered last first; secrets are not in it."""
    return StrictJSON({"items": [webhook_json(each) for each in webhooks.every(context)], "next": None})


@router.post("", summary="Register a target", status_code=201, response_model=NewWebhookShape, responses=changes(422))
def post_webhook(context: ContextDep, body: WebhookBody) -> Response:
    """The answer holds its secret, which is shown this once and signs every delivery."""
    made = webhooks.register(context, body.url, body.name, body.events, body.networks, datetime.now(UTC))
    return StrictJSON({**webhook_json(made.webhook), "secret": made.secret}, status_code=201)


@router.delete("/{number}", summary="Delete a target", status_code=204, responses=changes(404, 422))
def delete_webhook(context: ContextDep, number: Number) -> Response:
    """What is still to be sent to it goes too."""
    webhooks.forget(context, number)
    return Response(status_code=204)


@router.post("/{number}/ping", summary="Send a target a test", status_code=202, response_class=Response, responses=changes(404, 422))
def post_ping(context: ContextDep, number: Number) -> Response:
    """It is sent within seconds; the deliveries say what came of it."""
    webhooks.ping(context, number, datetime.now(UTC))
    return Response(status_code=202)


@router.get("/{number}/deliveries", summary="What a target was told", response_model=DeliveryList, responses=problems(404, 422))
def get_deliveries(context: ContextDep, number: Number, limit: Limit = 50) -> Response:
    """Newest first, with attempts, last status, and when it is tried again."""
    return StrictJSON({"items": [delivery_json(each) for each in webhooks.deliveries(context, number, limit)], "next": None})
