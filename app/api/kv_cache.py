"""The KV cache of a config over HTTP: an address of its own, since below /models it would be a model's."""

from fastapi import APIRouter
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes
from app.api.bodies import CacheBody
from app.api.shapes import CacheShape
from app.services.kv_cache import cache_json

router = APIRouter(prefix="/kv-cache", tags=["models"])


@router.post("", summary="The KV cache of a config", response_model=CacheShape, responses=changes(422))
def post_cache(body: CacheBody) -> Response:
    """Nothing is stored; pieces of a config are enough, and one that is not priced yet may still tell its cache."""
    return StrictJSON(cache_json(body.config, body.context, body.kv_dtype))
