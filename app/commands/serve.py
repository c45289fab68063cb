"""`phaseline serve`: the pages and the API."""

import socket
from typing import Annotated

import typer
import uvicorn

from app import __version__
from app.domain.errors import InvalidRequest
from app.services.startup import prepare
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
    prepare(application.state.context)
    listener = _listen(settings)
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{shown}:{listener.getsockname()[1]}{settings.root_path}/"
    print(f"Phaseline {__version__} serves {address}  (stop with Ctrl C)", flush=True)
    config = uvicorn.Config(
        application,
        log_level="warning",
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=30,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _listen(settings: Settings) -> socket.socket:
    """The socket to serve on, taken before an address is printed. Raises InvalidRequest when it cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        raise InvalidRequest(
            "port", f"Port {settings.port} of {settings.host} cannot be had ({error.strerror}): stop what uses it, or set PHASELINE_PORT."
        ) from error
