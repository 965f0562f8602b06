"""Answer the requests of the page, one question at a time, and no request that another site sends."""

import asyncio
import socket
from collections.abc import Mapping

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dualread.apps.score.results import Failed
from dualread.apps.score.scorer import Scorer
from dualread.apps.serve import web
from dualread.apps.serve.demo import asked, page
from dualread.errors import DataError

_CONNECTIONS = 256  # more than one browser opens; idle ones are closed soon
_SECONDS_FOR_BODY = 60
_MOST_BYTES = 5 * asked.MAX_BODY  # of all questions that are being sent or wait
_SECONDS_TO_STOP = 3
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def listen(port: int) -> socket.socket:
    """Return a socket that listens on this machine alone.

    Raises:
        ConfigError: The port is taken, or not allowed.
    """
    return web.listen(web.LOOPBACK, port)


def serve(app: ASGIApp, listening: socket.socket) -> None:
    """Answer requests until the program is interrupted."""
    try:
        server(app).run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn has closed all connections and raises it again
        print("stopped")


def server(app: ASGIApp) -> uvicorn.Server:
    """Return the server; it logs errors alone, and never what was asked."""
    return web.server(app, connections=_CONNECTIONS, seconds_to_stop=_SECONDS_TO_STOP)


def application(scorer: Scorer) -> ASGIApp:
    """Return the program behind the page: the page, its style and script, and the answers of `scorer`."""
    start, style, script = page.start(scorer), page.style(), page.script()
    turn = asyncio.Lock()  # one question at a time: a model in memory answers none faster beside another
    waiting: dict[Request, bytearray] = {}

    async def ask(request: Request) -> Response:
        body = waiting[request] = bytearray()
        try:
            async with asyncio.timeout(_SECONDS_FOR_BODY):
                async for part in request.stream():
                    body += part
                    if len(body) > asked.MAX_BODY:
                        raise DataError(asked.TOO_LARGE)
                    if sum(map(len, waiting.values())) > _MOST_BYTES:
                        return PlainTextResponse("Too many questions at once. Ask again in a minute.", 429)
            async with turn:
                question = await run_in_threadpool(asked.read, bytes(body), scorer.bits, scorer.ct_windows)
                [result] = await run_in_threadpool(lambda: list(scorer.each([question])))
        except DataError as error:
            return PlainTextResponse(str(error), 400)
        except TimeoutError:
            return PlainTextResponse("The question did not arrive in time. Ask again.", 408)
        finally:
            del waiting[request]
        if isinstance(result, Failed):
            return PlainTextResponse(result.error, 400)
        return HTMLResponse(page.result(result, scorer.method))

    async def show(request: Request) -> Response:
        return HTMLResponse(start)

    async def show_style(request: Request) -> Response:
        return Response(style, media_type="text/css")

    async def show_script(request: Request) -> Response:
        return Response(script, media_type="text/javascript")

    routes = {"/": show, "/demo.css": show_style, "/demo.js": show_script}
    return _OwnRequests(
        Starlette(routes=[*(Route(*route) for route in routes.items()), Route("/ask", ask, methods=["POST"])])
    )


class _OwnRequests:
    """Refuses what another site sends to `app`, and tells the browser what the page may load: itself."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        app = self._app if _is_own(request.method, request.headers) else PlainTextResponse(_FOREIGN, 403)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(name.lower().encode(), text.encode()) for name, text in _HEADERS.items()]
            await send(message)

        await app(scope, receive, with_headers)


_FOREIGN = (
    f"This program answers its own page alone, opened at http://{web.LOOPBACK} or http://localhost and the port that it"
    " named."
)


def _is_own(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request goes to this machine by name, and whether the page itself sent it if it asks anything.

    Browsers name the sending site under Origin in every POST.
    """
    host = headers.get("host", "")
    return web.is_here(host) and (method in ("GET", "HEAD") or headers.get("origin") == f"http://{host}")
