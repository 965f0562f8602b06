"""The body of a call: one user turn, first the image and then the text, as engines of our own show them."""

import base64
import io
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dualread.data.images import open_image, read_file, shown_alike
from dualread.errors import ArtifactError
from dualread.models.service.requests import URL, ServiceRequest

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

# Formats that services open as we do, unless the picture is turned, transparent, or has other than 8 bits.
_TYPES: dict[str | None, str] = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}

ImageUrl = Callable[[Path], str]


def image_url(images: str) -> ImageUrl:
    """Return what gives the URL of an image.

    Args:
        images: "data", the picture itself (a data URL); "file", the path of its file, for a service on the same machine
            that may read it; or an address, before the file's name, where the files of the manifests were put.
    """
    if images == "data":
        return _data_url
    if images == "file":
        return lambda path: path.resolve().as_uri()
    return lambda path: f"{images.rstrip('/')}/{quote(path.name)}"


def body_of(request: ServiceRequest, manifest: Path, url_of: ImageUrl) -> dict[str, Any]:
    """Return the body of the call; `manifest` is the artifact with the images.

    A picture that is changed before it is shown travels in the body as PNG, however others travel.

    Raises:
        ArtifactError: The manifest names an image outside the artifact, which somebody has written there by hand.
    """
    file = PurePosixPath(request.question.image_file)
    if file.is_absolute() or ".." in file.parts:
        raise ArtifactError(f"{manifest}: the image {file} is outside the artifact, and is not sent. Make it again.")
    shown = request.question.request(manifest).image
    image = None
    if isinstance(shown, Path):
        image = url_of(shown)
    elif shown is not None:  # a changed picture has no file that a service could read
        image = _as_data("image/png", _png(shown() if callable(shown) else shown))
    content = [] if image is None else [{"type": "image_url", "image_url": {"url": image}}]
    content.append({"type": "text", "text": request.question.text})
    return {**request.body, "messages": [{"role": "user", "content": content}]}


def line_of(request: ServiceRequest, body: dict[str, Any]) -> dict[str, Any]:
    """Return the line of a request in the format of the Batch API; `body` is that of the call."""
    return {"custom_id": request.custom_id, "method": "POST", "url": URL, "body": body}


def _data_url(path: Path) -> str:
    """Return the file's bytes as a data URL, or a PNG of the picture that our own engines see."""
    content = read_file(path)
    kind = _TYPES.get(shown_alike(content))
    return _as_data("image/png", _png(open_image(path))) if kind is None else _as_data(kind, content)


def _png(picture: "Picture") -> bytes:
    written = io.BytesIO()
    picture.save(written, "PNG")
    return written.getvalue()


def _as_data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
