"""Read a question as the page sends it: JSON with the texts `question`, `image` and perhaps `donor`, both in base64."""

import base64
import json

from dualread.apps.score.results import Question
from dualread.data.given_images import read as read_image
from dualread.data.images import Decoded
from dualread.errors import DataError
from dualread.schema.data import CtWindows

MAX_IMAGE_MEGABYTES = 20
_MAX_TEXT = 100_000  # far more than fits into a prompt
MAX_BODY = 2 * MAX_IMAGE_MEGABYTES * 1_000_000 * 4 // 3 + _MAX_TEXT  # base64 writes 3 bytes as 4
TOO_LARGE = f"The images are too large. At most {MAX_IMAGE_MEGABYTES} MB each are read. Shrink them."


def read(body: bytes, bits: int | None = None, ct_windows: CtWindows | None = None) -> Question:
    """Return the question in `body`, with its images decoded; the rest is as in `given_images.read`.

    Decoding an image can take a gigabyte: one question is read at a time.

    Raises:
        DataError: There is no image, or an image is too large or cannot be decoded; or the page did not write `body`.
    """
    try:
        sent = json.loads(body)
        texts = {name: sent.get(name) or "" for name in ("image", "question", "donor")}
        images = {name: base64.b64decode(texts[name], validate=True) for name in ("image", "donor")}
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise DataError(f"What was sent is no question of this page ({error}). Load the page again.") from error
    if not images["image"]:
        raise DataError("There is no image. Drop one on the page, or choose a file.")
    donor = _image(images["donor"], "The second image", bits, ct_windows) if images["donor"] else None
    image = _image(images["image"], "The image", bits, ct_windows)
    return Question(image=image, question=texts["question"], donor=donor)


def _image(content: bytes, name: str, bits: int | None, ct_windows: CtWindows | None) -> Decoded:
    if len(content) > MAX_IMAGE_MEGABYTES * 1_000_000:
        raise DataError(TOO_LARGE)
    try:
        return read_image(content, bits=bits, ct_windows=ct_windows)
    except DataError as error:
        raise DataError(f"{name} cannot be used: {error}") from error
