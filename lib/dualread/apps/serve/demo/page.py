"""The page of `dualread demo`: what the browser sends, one question at a time, and what it is shown."""

import asyncio
import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

import dualread.reporting
from dualread.apps.score.results import Failed, Question, Reading, Scored
from dualread.apps.score.scorer import Scorer
from dualread.apps.serve import web
from dualread.apps.serve.demo.examples import EXAMPLES
from dualread.data.given_images import read as read_image
from dualread.data.images import Decoded
from dualread.errors import DataError
from dualread.schema.data import CtWindows

MAX_IMAGE_MEGABYTES = 20
MAX_BODY = 2 * MAX_IMAGE_MEGABYTES * 1_000_000 * 4 // 3 + 100_000  # base64 writes 3 bytes as 4; and the question
_MOST_BYTES = 5 * MAX_BODY  # of all questions that are being sent or wait
_CONNECTIONS = 256  # more than one browser opens; idle ones are closed soon
_SECONDS_TO_STOP = 3
_TOO_LARGE = f"The images are too large. At most {MAX_IMAGE_MEGABYTES} MB each are read. Shrink them."
_FOREIGN = (
    f"This program answers its own page alone, opened at http://{web.LOOPBACK} or http://localhost and the port that it"
    " named."
)
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_FOLDER, _SHARED = Path(__file__).parent, Path(dualread.reporting.__file__).parent  # the look of the other pages
_DECISIONS = {True: "Keep", False: "Do not keep", None: "Undecided"}
_PSR, _PER = "PSR, before the answer", "PER, after the answer"


def listen(port: int) -> socket.socket:
    """Return a socket that listens on this machine alone.

    Raises:
        ConfigError: The port is taken, or not allowed.
    """
    return web.listen(web.LOOPBACK, port)


def server(app: ASGIApp) -> uvicorn.Server:
    """Return the server; it logs errors alone, and never what was asked."""
    return web.server(app, connections=_CONNECTIONS, seconds_to_stop=_SECONDS_TO_STOP)


def application(scorer: Scorer) -> ASGIApp:
    """Return the program behind the page: the page, its style and script, and the answers of `scorer`."""
    turn = asyncio.Lock()  # one question at a time: a model in memory answers none faster beside another
    bodies = web.Bodies(
        MAX_BODY,
        _MOST_BYTES,
        too_large=(400, _TOO_LARGE),
        too_many=(429, "Too many questions at once. Ask again in a minute."),
        too_late=(408, "The question did not arrive in time. Ask again."),
    )

    async def ask(request: Request) -> Response:
        body = b""
        try:
            body = await bodies.read(request)
            async with turn:
                question = await run_in_threadpool(read_question, body, scorer.bits, scorer.ct_windows)
                [result] = await run_in_threadpool(lambda: list(scorer.each([question])))
        except web.RefusedError as refused:
            return PlainTextResponse(str(refused), refused.status)
        except DataError as error:
            return PlainTextResponse(str(error), 400)
        finally:
            bodies.release(len(body))
        if isinstance(result, Failed):
            return PlainTextResponse(result.error, 400)
        return HTMLResponse(result_of(result, scorer.method))

    def shows(content: str, kind: str) -> Any:
        async def show(request: Request) -> Response:
            return Response(content, media_type=kind)

        return show

    def refusal(request: Request) -> Response | None:
        """Refuse a name of another site, and a question that the page has not sent: browsers name who sends a POST."""
        host = request.headers.get("host", "")
        is_page = request.method in ("GET", "HEAD") or request.headers.get("origin") == f"http://{host}"
        return None if web.is_here(host) and is_page else PlainTextResponse(_FOREIGN, 403)

    start = _rendered(method=scorer.method, notes=scorer.notes, megabytes=MAX_IMAGE_MEGABYTES, examples=EXAMPLES)
    files = (_SHARED / "colors.css", _SHARED / "elements.css", _FOLDER / "demo.css")
    style = "".join(path.read_text(encoding="utf-8") for path in files)
    routes = [
        Route("/", shows(start, "text/html")),
        Route("/demo.css", shows(style, "text/css")),
        Route("/demo.js", shows((_FOLDER / "demo.js").read_text(encoding="utf-8"), "text/javascript")),
        Route("/ask", ask, methods=["POST"]),
    ]
    return web.Guarded(Starlette(routes=routes), refusal, lambda scope: _HEADERS)


def read_question(body: bytes, bits: int | None = None, ct_windows: CtWindows | None = None) -> Question:
    """Return the question in what the page sends: JSON with `question`, and in base64 `image` and perhaps `donor`.

    Decoding an image can take a gigabyte: one question is read at a time. The rest is as in `given_images.read`.

    Raises:
        DataError: There is no image, or an image is too large or cannot be decoded; or the page did not write `body`.
    """
    try:
        sent = json.loads(body)
        texts = {name: sent.get(name) or "" for name in ("image", "question", "donor")}
        images = {name: base64.b64decode(texts[name], validate=True) for name in ("image", "donor")}
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise DataError(f"What was sent is no question of this page ({error}). Load the page again.") from error

    def decoded(content: bytes, name: str) -> Decoded:
        if len(content) > MAX_IMAGE_MEGABYTES * 1_000_000:
            raise DataError(_TOO_LARGE)
        try:
            return read_image(content, bits=bits, ct_windows=ct_windows)
        except DataError as error:
            raise DataError(f"{name} cannot be used: {error}") from error

    if not images["image"]:
        raise DataError("There is no image. Drop one on the page, or choose a file.")
    donor = decoded(images["donor"], "The second image") if images["donor"] else None
    return Question(image=decoded(images["image"], "The image"), question=texts["question"], donor=donor)


def result_of(scored: Scored, method: str) -> str:
    """Return the part of the page that shows `scored`; whatever the actor said stays a text."""
    completions = [("the image", scored), *([] if scored.donor is None else [("the second image", scored.donor)])]
    rows, decision = list(_rows(scored, method)), _DECISIONS[scored.decision.keep]
    return _rendered(scored=scored, rows=rows, decision=decision, completions=completions)


def _rows(scored: Scored, method: str) -> Iterator[dict[str, Any]]:
    """Yield one row per confidence: its name, its value on each image and whether it is imputed, and the drop."""
    sides: list[Reading] = [scored] if scored.donor is None else [scored, scored.donor]
    has_parts = any(reading.psr is not None and reading.per is not None for reading in sides)
    values = {_PSR: [(side.psr, False) for side in sides], _PER: [(side.per, False) for side in sides]}
    values = values if has_parts else {}
    for name in (*(name for name in scored.methods if name != method), method):
        values[name] = [(side.methods[name].confidence, side.methods[name].imputed) for side in sides]
    for name, of_sides in values.items():
        numbers = [value for value, _ in of_sides if value is not None]
        drop = numbers[0] - numbers[1] if len(numbers) > 1 else None
        shown = f"{name}, both together" if name == method and has_parts else name
        yield {"name": shown, "values": of_sides, "drop": drop, "decides": name == method}


def _rendered(**values: Any) -> str:
    """Return the whole page, or with `scored` the part that shows a result."""
    loader, escapes = FileSystemLoader(_FOLDER), select_autoescape(["jinja"])
    environment = Environment(loader=loader, autoescape=escapes, undefined=StrictUndefined)
    return environment.get_template("demo.html.jinja").render(**values)
