"""The server: who may ask, how much, and what else it says about itself; `chats` answers the requests themselves."""

import hmac
import time
import uuid
from collections.abc import Collection

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dualread.apps.serve import web, wire
from dualread.apps.serve.chats import Chats, JsonReply

STUCK_SECONDS = 120


def application(
    chats: Chats, *, api_key: str | None = None, hosts: Collection[str] = (), stuck_seconds: float = STUCK_SECONDS
) -> ASGIApp:
    """Return the server's program.

    Args:
        chats: What answers requests to /v1/chat/completions.
        api_key: What requests have to say; None to answer everyone.
        hosts: Names of this server besides those that `web.is_here` knows, where there is no key.
        stuck_seconds: For how long nothing may happen, while something is asked, before /health says it.
    """
    began = int(time.time())

    async def health(request: Request) -> Response:
        if (broken := chats.service.broken) is not None:
            return PlainTextResponse(f"broken: {broken}", 503)
        if (seconds := chats.seconds_stuck) > stuck_seconds:
            return PlainTextResponse(f"stuck: for {seconds:.0f} s, nothing has happened to what is asked", 503)
        return PlainTextResponse("ok")

    async def metrics(request: Request) -> Response:
        return Response(chats.counts.text(), media_type=CONTENT_TYPE_LATEST)

    async def models(request: Request) -> Response:
        known = {"id": chats.model, "object": "model", "created": began, "owned_by": "dualread"}
        name = request.path_params.get("model")
        if name is None:
            return JsonReply({"object": "list", "data": [known]})
        if name != chats.model:
            return JsonReply(wire.error(**wire.unknown_model(name, chats.model)), 404)
        return JsonReply(known)

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        text = f"{request.method} {request.url.path[:100]}: {error.detail}."
        if not request.url.path.startswith("/v1"):
            text += f" The base URL of this server ends with /v1: http://{request.headers.get('host', '')[:100]}/v1."
        return JsonReply(wire.error(text), error.status_code, headers=error.headers)

    async def broken(request: Request, error: Exception) -> Response:
        return JsonReply(wire.error(f"the server has a bug ({type(error).__name__}).", "server_error"), 500)

    routes = [
        Route("/v1/chat/completions", chats, methods=["POST"]),
        Route("/v1/models", models),
        Route("/v1/models/{model:path}", models),
        Route("/metrics", metrics),
        Route("/health", health),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: refuse, Exception: broken})
    return _Guarded(app, api_key=api_key, hosts=hosts)


class _Guarded:
    """Refuses who may not ask: another site's page, and whoever does not know the key; /health answers everyone."""

    def __init__(self, app: ASGIApp, *, api_key: str | None, hosts: Collection[str]):
        self._app, self._key, self._hosts = app, api_key, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["request_id"] = uuid.uuid4().hex

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", name.encode())]
            await send(message)

        await (self._refusal(Request(scope)) or self._app)(scope, receive, send_named)

    def _refusal(self, request: Request) -> Response | None:
        headers, host = request.headers, request.headers.get("host", "")
        if self._key is not None:  # which no page of another site knows
            kind, _, key = headers.get("authorization", "").partition(" ")
            same = hmac.compare_digest(key.strip().encode(), self._key.encode())
            if request.url.path == "/health" or (kind.lower() == "bearer" and same):
                return None
            text = "the API key is missing or wrong."
            return JsonReply(wire.error(text, "authentication_error", "invalid_api_key"), 401)
        if not web.is_here(host, self._hosts):
            text = (
                f"without a key, this server answers no request to the name {host[:100]!r}: a page of another site may"
                " have sent it. Ask for an address such as 127.0.0.1; or start the server with a key (--api-key), or"
                " with this name (--allow-host). Behind a proxy, the name is that of its upstream."
            )
            return JsonReply(wire.error(text, "permission_error", "host"), 403)
        if headers.get("origin") not in (None, f"http://{host}", f"https://{host}"):
            text = "this server answers no page of another site."
            return JsonReply(wire.error(text, "permission_error", "origin"), 403)
        return None
