"""`phaseline worker`: measures on this machine what a server asks for."""

import os
import signal
import sys
import threading
from typing import Annotated

import typer

from app.jobs import KINDS
from app.logs import configure_logging, redactor
from app.settings import load_settings
from app.worker.agent import Agent, Options
from app.worker.server import Server
from app.worker.state import State


def worker(
    server: Annotated[str | None, typer.Option(help="Address of the server; PHASELINE_SERVER, else this machine's.")] = None,
    token: Annotated[str | None, typer.Option(help="Token of this worker; better kept in PHASELINE_WORKER_TOKEN or its _FILE.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Run one job and end.")] = False,
    until_stdin_ends: Annotated[bool, typer.Option("--until-stdin-ends", hidden=True)] = False,
) -> None:
    """Run measurement jobs on this machine, for a server that is asked over HTTP; nothing listens here."""
    settings = load_settings()
    configure_logging()
    shown = token or settings.worker_token
    if shown:
        redactor.learn(shown)
    # The measuring process reads these from its environment; a .env file is not in it.
    for name, path in (("PHASELINE_LLAMA_BENCH", settings.llama_bench), ("PHASELINE_LLAMA_MODELS", settings.llama_models)):
        if path is not None:
            os.environ[name] = str(path.resolve())
    if until_stdin_ends:
        threading.Thread(target=_stop_when_stdin_ends, daemon=True).start()
    agent = Agent(
        Server(server or settings.server_address, shown),
        State(settings.resolved_worker_dir),
        Options(name=settings.worker_name, once=once, kinds=[kind for kind in KINDS if kind != "llama_bench" or settings.llama_bench]),
    )
    code = agent.run()
    if code:
        raise typer.Exit(code)


def _stop_when_stdin_ends() -> None:
    """The server that started this worker holds the other end: when that process is gone, however it ended, so are we."""
    while os.read(sys.stdin.fileno(), 1024):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
