"""What an attempt tells the server, in a thread of its own: measuring goes on while the server is away, and is told afterwards."""

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from app.logs import redactor
from app.worker.server import Denied, Gone, Misunderstood, Server, Unreachable

_MOST_KEPT = 20_000
_MOST_SENT = 500
_EVERY_S = 1.0
_RETRY_S = (0.5, 5.0)
_TEXT, _SHORT = 4000, 500
_MOST_KEYS = 100


class Reports:
    """Events are added by the attempt and sent about once a second; without any, a heartbeat keeps the lease.

    `cancel` is set when the job's end is asked for, `gone` when the attempt is no longer ours, `denied` when the server lets us in no more.
    """

    def __init__(self, server: Server, job: int, attempt: int, heartbeat_s: float) -> None:
        self._server, self._job, self._attempt, self._heartbeat_s = server, job, attempt, heartbeat_s
        self._waiting: deque[Mapping[str, Any]] = deque(maxlen=_MOST_KEPT)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.cancel, self.gone, self.denied = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def add(self, event: Mapping[str, Any]) -> None:
        """Tell an event of the measuring process, without secrets and within what the server takes."""
        if (clean := cleaned(event)) is not None:
            with self._lock:
                self._waiting.append(clean)

    def log(self, text: str, level: str = "info") -> None:
        """Tell a line of the log."""
        self.add({"event": "log", "level": level, "text": text})

    def close(self, within_s: float) -> None:
        """Send what is left, for so long at most, and stop."""
        self._closing.set()
        self._thread.join(timeout=within_s)

    @property
    def over(self) -> bool:
        """Whether nothing that is told counts any longer."""
        return self.gone.is_set() or self.denied.is_set()

    def _run(self) -> None:
        told, pause_s = time.monotonic(), _RETRY_S[0]
        while not self.over:
            closing = self._closing.is_set()
            batch = self._batch()
            if not batch and closing:
                return
            if not batch and time.monotonic() - told < self._heartbeat_s:
                self._closing.wait(min(_EVERY_S, self._heartbeat_s))
                continue
            if self._send(batch):
                told, pause_s = time.monotonic(), _RETRY_S[0]
                self._closing.wait(0 if len(batch) == _MOST_SENT else min(_EVERY_S, self._heartbeat_s))
            else:
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _RETRY_S[1])

    def _batch(self) -> list[Mapping[str, Any]]:
        with self._lock:
            return [self._waiting[position] for position in range(min(len(self._waiting), _MOST_SENT))]

    def _send(self, batch: list[Mapping[str, Any]]) -> bool:
        """Whether it was taken, or can be dropped."""
        try:
            if self._server.report(self._job, self._attempt, batch):
                self.cancel.set()
        except Unreachable:
            return False
        except Gone:
            self.gone.set()
        except Misunderstood:
            pass  # What the server cannot take now it can never take; what comes after it may do.
        except Denied:
            self.denied.set()
        with self._lock:
            for _ in range(min(len(batch), len(self._waiting))):
                self._waiting.popleft()
        return True


def cleaned(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """An event as the server takes it: known keys, flat figures, short texts, no secrets. None for what it does not know."""
    kind = event.get("event")
    if kind == "log":
        level = event.get("level")
        text = redactor.text(str(event.get("text", "")))[:_TEXT]
        return {"event": "log", "level": level if level in ("debug", "info", "warning", "error") else "info", "text": text}
    if kind == "progress":
        told = {key: _count(event.get(key)) for key in ("done", "total")}
        current, eta = event.get("current"), _figure(event.get("eta_s"))
        words = redactor.text(str(current))[:_SHORT] if current is not None else None
        return {"event": "progress", "done": told["done"] or 0, "total": told["total"], "current": words, "eta_s": eta}
    if kind == "point" and isinstance(event.get("point"), Mapping):
        items = list(event["point"].items())[:_MOST_KEYS]
        return {"event": "point", "point": {str(key)[:100]: _scalar(value) for key, value in items}}
    return None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**9 else None


def _figure(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1e9 else None


def _scalar(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if value is None or isinstance(value, bool | int):
        return value
    return redactor.text(str(value))[:_SHORT]
