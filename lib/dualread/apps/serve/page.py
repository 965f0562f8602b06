"""The page of the server: a person asks about an image there, by the requests that other clients send.

The examples for the first click are drawn, because a reader's folder holds no image: those of a data set are not ours
to pass on. The actors of the embedded study were trained on such images.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from PIL import Image
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import dualread.reporting
from dualread.seeding import generator
from dualread.training.phantoms.scene import Scene, draw

_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_FOLDER, _SHARED = Path(__file__).parent, Path(dualread.reporting.__file__).parent  # the look of the other pages


@dataclass(frozen=True, kw_only=True)
class Example:
    """A question, as annotators of phantoms write it, about two drawn images; what they show, also in a few words.

    What is `expected` happens with an actor that has learned from such images, and a reader that is of use.
    """

    question: str
    scene: Scene
    donor: Scene
    shown: str
    donor_shown: str
    expected: str

    @property
    def addresses(self) -> Sequence[str]:
        """Both images as addresses of PNGs, "data:image/png;base64,...". What both show looks the same in both."""
        addresses = []
        for scene in (self.scene, self.donor):
            Image.fromarray(draw(scene, generator("demo", self.shown))).save(file := BytesIO(), format="PNG")
            addresses.append(f"data:image/png;base64,{b64encode(file.getvalue()).decode()}")
        return addresses


# Of the donor's scene, the file says what differs.
EXAMPLES = [
    Example(**entry | {"scene": (scene := Scene(**entry["scene"])), "donor": replace(scene, **entry["donor"])})
    for entry in json.loads((_FOLDER / "demo.json").read_text(encoding="utf-8"))
]


def routes(*, method: str, notes: Sequence[str], megabytes: int) -> list[Route]:
    """Return the page, its style and its script.

    Args:
        method: The method whose reader gives the confidence.
        notes: What differs from what the reader was fitted on.
        megabytes: Of the largest image whose request the server takes.
    """
    loader, escapes = FileSystemLoader(_FOLDER), select_autoescape(["jinja"])
    environment = Environment(loader=loader, autoescape=escapes, undefined=StrictUndefined)
    page = environment.get_template("demo.html.jinja").render(
        method=method, notes=notes, megabytes=megabytes, examples=EXAMPLES
    )
    files = (_SHARED / "colors.css", _SHARED / "elements.css", _FOLDER / "demo.css")
    style = "".join(file.read_text(encoding="utf-8") for file in files)
    script = (_FOLDER / "demo.js").read_text(encoding="utf-8")
    contents = {"/": (page, "text/html"), "/demo.css": (style, "text/css"), "/demo.js": (script, "text/javascript")}

    async def show(request: Request) -> Response:
        content, kind = contents[request.url.path]
        return Response(content, media_type=kind, headers=_HEADERS)

    return [Route(path, show) for path in contents]
