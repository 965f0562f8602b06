"""The server: who may ask, how much, what else it says about itself; `chats` answers the requests themselves.

On its page, a person asks about an image by the requests that other clients send. The examples for the first click are
drawn, because a reader's folder holds no image: those of a data set are not ours to pass on. The actors of the embedded
study were trained on such images.
"""

import hmac
import json
import time
import uuid
from base64 import b64encode
from collections.abc import Collection, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import dualread.reporting
from dualread.apps.serve import web
from dualread.apps.serve.chats import Chats
from dualread.apps.serve.web import JsonReply, RefusedError
from dualread.reporting.pages import environment
from dualread.seeding import generator
from dualread.training.phantoms.scene import Scene, draw


def application(
    chats: Chats, *, api_key: str | None = None, hosts: Collection[str] = (), stuck_seconds: float = 120
) -> ASGIApp:
    """Return the server's program.

    Without `api_key`, requests have to name this server, by a name that `web.is_here` knows or one of `hosts`. /health
    says that it is stuck when nothing has happened to what is asked for `stuck_seconds`.
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
        if (name := request.path_params.get("model")) is None:
            return JsonReply({"object": "list", "data": [known]})
        return JsonReply(known) if name == chats.model else chats.unknown_model(name).reply()

    loaded = chats.service.loaded
    shown = page_routes(method=loaded.readers.method, notes=loaded.notes, megabytes=chats.limits.megabytes * 70 // 100)
    public = [route.path for route in shown]  # the page asks for the key
    routes = [
        Route("/v1/chat/completions", chats, methods=["POST"]),
        Route("/v1/models", models),
        Route("/v1/models/{model:path}", models),
        Route("/metrics", metrics),
        Route("/health", health),
        *shown,
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refuse, Exception: _broken})

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        scope["request_id"] = name = uuid.uuid4().hex

        async def send_with_name(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", name.encode())]
            await send(message)

        await (_refusal(Request(scope), api_key, hosts, public) or app)(scope, receive, send_with_name)

    return guarded


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = f"{request.method} {request.url.path[:100]}: {error.detail}."
    if not request.url.path.startswith("/v1"):
        text += f" The base URL of this server ends with /v1: http://{request.headers.get('host', '')[:100]}/v1."
    return RefusedError(error.status_code, text).reply(error.headers)


async def _broken(request: Request, error: Exception) -> Response:
    return RefusedError(500, f"the server has a bug ({type(error).__name__}).", "server_error").reply()


def _refusal(request: Request, api_key: str | None, hosts: Collection[str], public: Sequence[str]) -> Response | None:
    """Return why a request is not let in; None for one that is. What is `public` is shown to who has no key, too."""
    headers, host = request.headers, request.headers.get("host", "")
    if api_key is not None:  # which no page of another site knows
        kind, _, key = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(key.strip().encode(), api_key.encode())
        if request.url.path in ("/health", *public) or (kind.lower() == "bearer" and same):
            return None
        text = "the API key is missing or wrong."
        return RefusedError(401, text, "authentication_error", "invalid_api_key").reply()
    if not web.is_here(host, hosts):
        text = (
            f"without a key, this server answers no request to the name {host[:100]!r}: a page of another site may"
            " have sent it. Ask for an address such as 127.0.0.1; or start the server with a key (--api-key), or"
            " with this name (--allow-host). Behind a proxy, the name is that of its upstream."
        )
        return RefusedError(403, text, "permission_error", "host").reply()
    if headers.get("origin") not in (None, f"http://{host}", f"https://{host}"):
        text = "this server answers no page of another site."
        return RefusedError(403, text, "permission_error", "origin").reply()
    return None


_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_FOLDER, _SHARED = Path(__file__).parent, Path(dualread.reporting.__file__).parent  # the look of the other pages


def examples() -> list[dict[str, Any]]:
    """Return questions, as annotators of phantoms write them, about two drawn images: demo.json with their scenes.

    Of the donor's scene, the file says what differs. What is `expected` happens with an actor that has learned from
    such images, and a reader that is of use.
    """
    entries = json.loads((_FOLDER / "demo.json").read_text(encoding="utf-8"))
    for entry in entries:
        entry["scenes"] = [Scene(**entry["scene"]), Scene(**entry["scene"] | entry["donor"])]
        entry["addresses"] = [_address(draw(scene, generator("demo", entry["shown"]))) for scene in entry["scenes"]]
    return entries


def _address(pixels: np.ndarray) -> str:
    Image.fromarray(pixels).save(file := BytesIO(), format="PNG")
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"


def page_routes(*, method: str, notes: Sequence[str], megabytes: int) -> list[Route]:
    """Return the page, its style and its script; `megabytes` is the size of the largest image that it sends."""
    page = (
        environment(_FOLDER)
        .get_template("demo.html.jinja")
        .render(method=method, notes=notes, megabytes=megabytes, examples=examples())
    )
    files = (_SHARED / "colors.css", _SHARED / "elements.css", _FOLDER / "demo.css")
    style = "".join(file.read_text(encoding="utf-8") for file in files)
    script = (_FOLDER / "demo.js").read_text(encoding="utf-8")
    contents = {"/": (page, "text/html"), "/demo.css": (style, "text/css"), "/demo.js": (script, "text/javascript")}

    async def show(request: Request) -> Response:
        content, kind = contents[request.url.path]
        return Response(content, media_type=kind, headers=_HEADERS)

    return [Route(path, show) for path in contents]
