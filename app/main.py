"""create_app(): settings in, routers, middleware, lifespan; nothing else."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from app import __version__
from app.api import api_router, health_router
from app.api.answers import problem_answer
from app.domain.errors import PhaselineError
from app.logs import configure_logging
from app.pages import page_router
from app.pages.errors import error_page
from app.pages.lasting_files import LastingFiles
from app.paths import STATIC
from app.security.headers import SECURITY_HEADERS, SecurityHeaders
from app.security.origin import OriginGuard
from app.security.prefix import PathPrefix
from app.services.context import make_context
from app.services.delivering import deliver_forever
from app.services.housekeeping import keep_house_forever
from app.services.leasing import bear_with_workers
from app.services.problems import Problem, invalid_input, problem_of
from app.services.startup import prepare
from app.settings import Settings, load_settings

API_PREFIX = "/api/v1"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_JSON_PATHS = (API_PREFIX, "/healthz", "/readyz")
_DESCRIPTION = (
    "Prefill and decode of LLM requests, predicted, measured and compared. Times in seconds, rates with their scope, null for unknown."
)

log = structlog.get_logger()


def create_app(settings: Settings | None = None) -> FastAPI:
    """The whole application for `settings` (those of the environment when None). Opens no connection before it starts."""
    configure_logging()
    settings = settings or load_settings()
    context = make_context(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if not context.prepared.is_set():
            prepare(context)
        bear_with_workers(context)
        tasks = [asyncio.create_task(keep_house_forever(context)), asyncio.create_task(deliver_forever(context))]
        yield
        context.bell.close()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        context.database.close()

    app = FastAPI(
        title="Phaseline",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url=f"{API_PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.root_path = settings.root_path  # for whoever serves this application: the argument of FastAPI is deprecated
    app.state.context = context
    app.include_router(health_router)
    app.include_router(api_router, prefix=API_PREFIX)
    app.include_router(page_router)
    app.mount("/static", LastingFiles(directory=STATIC), name="static")
    _answer_errors(app)
    app.add_middleware(OriginGuard, allowed_hosts=settings.allowed_hosts)
    app.add_middleware(SecurityHeaders)
    if settings.root_path:
        app.add_middleware(PathPrefix, prefix=settings.root_path)
    return app


def _answer_errors(app: FastAPI) -> None:
    def on(kind: type[Exception], problem: Callable[[Exception], Problem]) -> None:
        def answer(request: Request, error: Exception) -> Response:
            response = _answer(request, problem(error))
            # A fault is answered outside the middleware that sets these.
            response.headers.update(SECURITY_HEADERS)
            if response.status_code == 405:
                response.headers["allow"] = _allowed(request)
            return response

        app.add_exception_handler(kind, answer)

    on(PhaselineError, lambda error: problem_of(error) if isinstance(error, PhaselineError) else _fault(error))
    on(RequestValidationError, lambda error: invalid_input(error.errors()) if isinstance(error, RequestValidationError) else _fault(error))
    on(HTTPException, lambda error: Problem(error.status_code, _sentence(error)) if isinstance(error, HTTPException) else _fault(error))
    on(Exception, _fault)


def _answer(request: Request, problem: Problem) -> Response:
    if request.url.path.removeprefix(request.scope.get("root_path", "")).startswith(_JSON_PATHS):
        return problem_answer(problem)
    return error_page(request, problem)


def _allowed(request: Request) -> str:
    """The methods that an address takes: GET and POST of one path are two routes, and each knows only of itself."""
    found = [
        name for name in _METHODS if any(route.matches({**request.scope, "method": name})[0] is Match.FULL for route in request.app.routes)
    ]
    # The folder of static files lets every method through to its files, which take these two.
    return ", ".join(("GET", "HEAD") if not found or request.method in found else found)


def _sentence(error: HTTPException) -> str:
    sentences = {
        404: "There is nothing at this address.",
        405: "This address does not take that method.",
        400: "The request cannot be read: send well-formed JSON of ordinary depth and size, or a complete form.",
        413: "The file is larger than PHASELINE_MAX_UPLOAD_BYTES allows.",
    }
    return sentences.get(error.status_code, str(error.detail))


def _fault(error: Exception) -> Problem:
    log.error("fault", error=type(error).__name__, exc_info=error)
    return Problem(500, "Phaseline failed on this request, which is a fault of ours; the log has the details.")
