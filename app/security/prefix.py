"""The path below which a proxy serves us, whether the proxy hands it on or takes it off."""

from starlette.types import ASGIApp, Receive, Scope, Send


class PathPrefix:
    """ASGI middleware: a call's path always begins with `prefix`, as the routes of an application with this root path expect."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["path"]
            if path != self.prefix and not path.startswith(f"{self.prefix}/"):
                raw = self.prefix.encode() + scope.get("raw_path", path.encode())
                scope = {**scope, "path": self.prefix + path, "raw_path": raw}
        await self.app(scope, receive, send)
