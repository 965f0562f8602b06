"""The server: who may ask, how much, and what else it says about itself; `chats` answers the requests themselves."""

import hmac
import time
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dualread.commands import web
from dualread.commands.serve import wire
from dualread.commands.serve.chats import Chats

_Answer = Callable[[Request], Awaitable[Response]]


def application(chats: Chats, *, api_key: str | None = None, here: bool = True) -> ASGIApp:
    """Return the server's program.

    Args:
        chats: What answers requests to /v1/chat/completions.
        api_key: What requests have to say; None to answer everyone.
        here: Whether to answer only requests to this machine by a name of its own.
    """
    began = int(time.time())

    async def health(request: Request) -> Response:
        broken = chats.service.broken
        return PlainTextResponse("ok" if broken is None else f"broken: {broken}", 200 if broken is None else 503)

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(chats.counted(), media_type="text/plain; version=0.0.4")

    async def models(request: Request) -> Response:
        one = {"id": chats.model, "object": "model", "created": began, "owned_by": "dualread"}
        name = request.path_params.get("model")
        if name is None:
            return JSONResponse({"object": "list", "data": [one]})
        if name != chats.model:
            return JSONResponse(wire.error(**wire.unknown_model(name, chats.model)), 404)
        return JSONResponse(one)

    routes = [
        Route("/v1/chat/completions", chats, methods=["POST"]),
        Route("/v1/models", models),
        Route("/v1/models/{model:path}", models),
        Route("/metrics", metrics),
        Route("/health", health),
    ]
    return _Guarded(Starlette(routes=routes), api_key=api_key, here=here)


class _Guarded:
    """Refuses who may not ask: another site's page, and whoever does not know the key; /health answers everyone."""

    def __init__(self, app: ASGIApp, *, api_key: str | None, here: bool):
        self._app, self._key, self._here = app, api_key, here

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(Request(scope))
        await (self._app if refused is None else refused)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        headers, host = request.headers, request.headers.get("host", "")
        if self._here and not web.is_here(host):
            said = f"this server answers requests to {web.LOOPBACK} or localhost alone."
            return JSONResponse(wire.error(said, "permission_error", "host"), 403)
        if self._key is None:
            if headers.get("origin") in (None, f"http://{host}"):
                return None
            return JSONResponse(
                wire.error("this server answers no page of another site.", "permission_error", "origin"), 403
            )
        kind, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self._key.encode())
        if request.url.path == "/health" or (kind.lower() == "bearer" and same):
            return None
        said = "the API key is missing or wrong."
        return JSONResponse(wire.error(said, "authentication_error", "invalid_api_key"), 401)
