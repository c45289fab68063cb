"""Static files that a browser keeps: every page names them with their time of change, so a new version has a new address."""

from typing import Any

from fastapi.staticfiles import StaticFiles
from starlette.responses import Response

_KEPT = "public, max-age=31536000, immutable"


class LastingFiles(StaticFiles):
    """The files of a folder, each to be kept for a year by whoever asked for it with its version (`?v=…`)."""

    async def get_response(self, path: str, scope: Any) -> Response:
        """The file's answer; one asked for without a version is checked again each time."""
        answer = await super().get_response(path, scope)
        if answer.status_code == 200 and scope.get("query_string", b"").startswith(b"v="):
            answer.headers["cache-control"] = _KEPT
        return answer
