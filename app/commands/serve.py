"""`phaseline serve`: the pages and the API."""

import socket
from collections.abc import Callable
from typing import Annotated

import typer
import uvicorn
from fastapi.concurrency import run_in_threadpool

from app import __version__
from app.commands.local_worker import LocalWorker
from app.domain.errors import InvalidRequest
from app.services.startup import prepare
from app.services.worker_access import local_token, shared_token
from app.settings import Settings, load_settings


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; HOST when not given.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; PORT when not given.", min=0, max=65535)] = None,
) -> None:
    """Migrate the database, load the catalog, serve pages and API."""
    from app.main import create_app

    settings = load_settings()
    settings = settings.model_copy(update={"host": host or settings.host, "port": port if port is not None else settings.port})
    settings.refuse_open_address()
    application = create_app(settings)
    context = application.state.context
    prepare(context)
    if settings.share_worker_token is not None:
        shared_token(context, settings.share_worker_token, context.clock.now())
    listener = _listen(settings)
    port = listener.getsockname()[1]
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{shown}:{port}{settings.root_path}/"
    print(f"Phaseline {__version__} serves {address}  (stop with Ctrl C)", flush=True)
    config = uvicorn.Config(
        application,
        log_level="warning",
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=30,
        server_header=False,
    )
    worker = None
    if settings.local_worker:
        worker = LocalWorker(_own_address(settings, port), local_token(context, context.clock.now()))
        worker.start()
    try:
        _Server(config, context.bell.close, worker).run(sockets=[listener])
    finally:
        if worker is not None:
            worker.stop()


class _Server(uvicorn.Server):
    """Ends the worker beside it while that can still give its job back, and tells those who wait in a call that the server stops."""

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], None], worker: LocalWorker | None) -> None:
        super().__init__(config)
        self._tell, self._worker = stopping, worker

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._worker is not None:
            await run_in_threadpool(self._worker.stop)
        self._tell()
        await super().shutdown(sockets)


def _own_address(settings: Settings, port: int) -> str:
    """How the worker beside this server reaches it: by loopback where it listens on every address."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}  # noqa: S104  compared with, not bound to
    host = everywhere.get(settings.host) or (f"[{settings.host}]" if ":" in settings.host else settings.host)
    return f"http://{host}:{port}{settings.root_path}"


def _listen(settings: Settings) -> socket.socket:
    """The socket to serve on, taken before an address is printed. Raises InvalidRequest when it cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        raise InvalidRequest(
            "port", f"Port {settings.port} of {settings.host} cannot be had ({error.strerror}): stop what uses it, or set PHASELINE_PORT."
        ) from error
