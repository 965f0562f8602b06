"""Choose among the frames of a file: the one that is named, or the only one that there is to see."""

import re
from pathlib import Path

import numpy as np
from PIL import Image

from dualread.data import images
from dualread.errors import DataError

_PATH = re.compile(r"(.+)#(\d{1,9})")
_REDUCED, _MASK, _OLD_REDUCED = 1, 4, 2  # kinds of TIFF pages that are no pictures of their own
_SUBFILE, _OLD_SUBFILE = 254, 255


def locate(path: Path) -> tuple[Path, int | None]:
    """Return the file and the number of the frame (from 1) that a path names: `stack.tif#2` is the second of stack.tif.

    A file that has this very name comes first.
    """
    named = _PATH.fullmatch(path.name)
    if named is None or path.exists():
        return path, None
    return path.with_name(named[1]), int(named[2])


def choose(content: bytes, name: str) -> tuple[int | None, tuple[str, ...]]:
    """Return the frame of a file that is shown where none was named, and what a person has to know about it.

    Several frames are one picture if all are equal, if the others are smaller copies or masks of one (TIFF says so), or
    if they follow the main picture of a JPEG, as cameras write.

    Args:
        content: The file.
        name: The image, in errors.

    Returns:
        The frame, from 1; None for the first, which all programs show.

    Raises:
        DataError: There are several frames, or the file cannot be read.
    """
    with images.opened(content, name) as image:
        if not getattr(image, "is_animated", False):
            return None, ()
        if image.format == "MPO":
            return None, ("the file holds several pictures: its main one is shown",)
        pages = _whole_pages(image) if image.format == "TIFF" else []
        if len(pages) == 1:
            return (pages[0] + 1 if pages[0] else None), ()
        if _are_equal(image):
            return None, ()
    raise DataError(
        f"{name}: has several frames, and nothing says which one is meant. Write its number behind the file's name,"
        " such as x.tif#1 for the first, or put the frame into a file of its own."
    )


def _whole_pages(image: Image.Image) -> list[int]:
    """Return the pages of a TIFF that are pictures of their own, at most the first two."""
    pages = []
    for page in range(images.MAX_FRAMES):
        try:
            image.seek(page)
        except EOFError:
            break
        tags = getattr(image, "tag_v2", {})
        if not tags.get(_SUBFILE, 0) & (_REDUCED | _MASK) and tags.get(_OLD_SUBFILE) != _OLD_REDUCED:
            pages.append(page)
        if len(pages) > 1:
            break
    return pages


def _are_equal(image: Image.Image) -> bool:
    """Return whether all frames are equal; those beyond the pixels that an image may have count as others."""
    image.seek(0)
    first = _frame(image)
    try:
        for i in range(1, images.MAX_FRAMES):
            if (i + 1) * image.width * image.height > images.MAX_IMAGE_PIXELS:
                break
            image.seek(i)
            if image.size != first.shape[1::-1]:
                break
            if not np.array_equal(first, _frame(image)):
                break
    except EOFError:
        return True
    return False


def _frame(image: Image.Image) -> np.ndarray:
    deep = image.mode in ("I", "F") or image.mode.startswith("I;16")
    return np.asarray(image if deep else image.convert("RGBA"))
