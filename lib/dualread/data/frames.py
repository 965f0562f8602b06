"""Choose among the frames of a file: the one that is named, or the only one that there is to see."""

import re
from pathlib import Path

import numpy as np
from PIL import Image

from dualread.errors import DataError

NAMED = "a named frame is shown (frame {})"
_PATH = re.compile(r"(.+)#(\d{1,9})")
_MOST = 1000  # of a file that Pillow has to read from its first frame to the one that is wanted
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


def choose(image: Image.Image, frame: int | None, name: str, most_pixels: int) -> list[str]:
    """Let `image` show one frame, and return what a person has to know.

    Several frames are one picture if all are equal, if the others are smaller copies or masks of one (TIFF says so), or
    if they follow the main picture of a JPEG, as cameras write.

    Args:
        image: An opened file.
        frame: The frame that was named, from 1; None if none was.
        name: The image, in errors.
        most_pixels: How many pixels are decoded at most, to compare frames or to reach one.

    Raises:
        DataError: There are several frames and none was named, or there is no such frame.
    """
    if frame is not None:
        _show(image, frame, name, most_pixels)
        return [NAMED.format(frame)]
    if not getattr(image, "is_animated", False):
        return []
    if image.format == "MPO":
        return ["the file holds several pictures: its main one is shown"]
    whole = _whole_pages(image) if image.format == "TIFF" else []
    if len(whole) == 1:
        image.seek(whole[0])
        return []
    if _are_equal(image, most_pixels):
        return []
    raise DataError(
        f"{name}: has several frames, and nothing says which one is meant. Write its number behind the file's name,"
        " such as x.tif#1 for the first, or put the frame into a file of its own."
    )


def _show(image: Image.Image, frame: int, name: str, most_pixels: int) -> None:
    if not 1 <= frame <= _MOST or frame * image.width * image.height > _MOST * most_pixels:
        raise DataError(f"{name}: frame {frame}, expected 1 to {_MOST}. Put the frame into a file of its own.")
    try:
        image.seek(frame - 1)
    except EOFError as error:
        raise DataError(f"{name}: has no frame {frame}. Frames count from 1. Correct the number.") from error


def _whole_pages(image: Image.Image) -> list[int]:
    """Return the pages of a TIFF that are pictures of their own, at most the first two."""
    found = []
    for page in range(_MOST):
        try:
            image.seek(page)
        except EOFError:
            break
        tags = getattr(image, "tag_v2", {})
        if not tags.get(_SUBFILE, 0) & (_REDUCED | _MASK) and tags.get(_OLD_SUBFILE) != _OLD_REDUCED:
            found.append(page)
        if len(found) > 1:
            break
    image.seek(0)
    return found


def _are_equal(image: Image.Image, most_pixels: int) -> bool:
    """Return whether all frames are equal; those beyond `most_pixels` count as others. The first one is shown then."""
    first = _frame(image)
    try:
        for i in range(1, _MOST):
            if (i + 1) * image.width * image.height > most_pixels:
                break
            image.seek(i)
            if image.size != first.shape[1::-1]:
                break
            if not np.array_equal(first, _frame(image)):
                break
    except EOFError:
        return True
    finally:
        image.seek(0)
    return False


def _frame(image: Image.Image) -> np.ndarray:
    deep = image.mode in ("I", "F") or image.mode.startswith("I;16")
    return np.asarray(image if deep else image.convert("RGBA"))
