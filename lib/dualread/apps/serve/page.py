"""The page of the server: a person asks about an image there, by the requests that other clients send.

The examples for the first click are drawn, because a reader's folder holds no image: those of a data set are not ours
to pass on. The actors of the embedded study were trained on such images.
"""

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
_WITH_LESION = Scene(
    modality="ct",
    region="abdomen",
    plane="axial",
    lesion_count=1,
    lesion_size="large",
    lesion_shape="round",
    lesion_color="white",
    lesion_position="upper right",
    noise=0.03,
)
_CLEAR = replace(_WITH_LESION, lesion_count=0)
_BLACK = replace(
    _WITH_LESION, modality="mri", region="head", lesion_shape="oval", lesion_color="black", lesion_position="lower left"
)
_HAZE = 0.9  # that of the hazy images of the studies


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


EXAMPLES = (
    Example(
        question="Does the picture look abnormal?",
        scene=_WITH_LESION,
        donor=_CLEAR,
        shown="a white lesion",
        donor_shown="no lesion",
        expected="The answer is easy to see, so confidence should be high.",
    ),
    Example(
        question="What color is the lesion?",
        scene=_BLACK,
        donor=replace(_BLACK, lesion_color="white"),
        shown="a black lesion",
        donor_shown="a white lesion",
        expected="The images differ in the color alone.",
    ),
    Example(
        question="Does the picture look abnormal?",
        scene=replace(_WITH_LESION, haze=_HAZE),
        donor=replace(_CLEAR, haze=_HAZE),
        shown="a white lesion behind a haze",
        donor_shown="no lesion, behind a haze",
        expected="Hardly anything can be seen, so confidence should be low.",
    ),
)


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
