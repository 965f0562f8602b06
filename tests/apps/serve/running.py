"""A server of an untrained actor, as the command runs it, and requests to it with the official client."""

import base64
import io
import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openai import OpenAI

from dualread.apps.score import ScorerChoice
from dualread.apps.serve import web
from dualread.apps.serve.application import application
from dualread.apps.serve.chats import Chats
from dualread.apps.serve.opening import open_service
from dualread.apps.serve.outcome import Outcome
from dualread.apps.serve.service import AnsweringService
from dualread.grading.canonical import canonical
from dualread.grading.parse import Parsed
from dualread.limits import ClientLimits
from tests.service import running
from tests.tiny import image

LESION = "Is there a lesion?"


def whole_answers(text: str) -> Parsed:
    """A format in which all that an actor says is its answer: an untrained one never says a valid answer block.

    What says nothing, or signs alone, is the answer `nothing`, so that there always is one.
    """
    answer = text.strip()
    return Parsed(answer=answer if canonical(answer) else "nothing", confidence=None, status="invalid_confidence")


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server."""

    port: int
    service: AnsweringService
    connected: OpenAI
    replies: list[Outcome] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, key: str = "none") -> OpenAI:
        """The official client; all of one server share its connections."""
        return self.connected.with_options(api_key=key)

    def ask(self, *given: Any, **parameters: Any) -> Any:
        """Ask about an image and a text with the official client; a text alone stands for its data URL."""
        return self.client().chat.completions.create(**{"model": "dualread", "messages": [user(*given)], **parameters})


def user(*given: Any) -> dict[str, Any]:
    """A message of the user: images as paths, bytes or pictures, and texts."""
    return {"role": "user", "content": [part(one) for one in given]}


def part(one: Any) -> dict[str, Any]:
    if isinstance(one, str):
        return {"type": "text", "text": one}
    return {"type": "image_url", "image_url": {"url": data_url(one)}}


def data_url(image: Any) -> str:
    if isinstance(image, Path):
        image = image.read_bytes()
    if not isinstance(image, bytes):
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        image = buffer.getvalue()
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


@contextmanager
def serving(
    service: AnsweringService,
    *,
    api_key: str | None = None,
    hosts: Sequence[str] = (),
    stuck_seconds: float = 120,
    limits: ClientLimits | None = None,
    **options: Any,
):
    """Serve `service`, which stays open."""
    replies: list[Outcome] = []
    named = {"model": "dualread", "limits": limits or ClientLimits(), "done": replies.append, **options}
    chats = Chats(service, **named)
    app = application(chats, api_key=api_key, hosts=hosts, stuck_seconds=stuck_seconds)
    server = web.server(app, connections=1000, seconds_to_stop=30)
    with (
        running(server, web.listen(web.LOOPBACK, 0)) as port,
        OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=60) as client,
    ):
        yield Server(port=port, service=service, connected=client, replies=replies)


@contextmanager
def opened(study, method: str = "dualread", methods: Sequence[str] = (), plugins: Sequence[str] = (), **options: Any):
    choice = ScorerChoice(reader=study.reader(method), checkpoint=study.actor, methods=methods, plugins=plugins)
    service = open_service(choice, batch_size=8, **options)
    try:
        yield service
    finally:
        service.close()


def sent(text=LESION, url=None, **more):
    parts = [
        {"type": "image_url", "image_url": {"url": data_url(image(1)) if url is None else url}},
        {"type": "text", "text": text},
    ]
    return {"messages": [{"role": "user", "content": parts}], **more}


def wait_until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.02)
