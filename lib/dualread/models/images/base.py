"""What image changes share: how the chain of changes of a condition and its view is applied to a picture."""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
from PIL.Image import Image

from dualread import plugins
from dualread.data.images import open_image
from dualread.errors import ArtifactError
from dualread.schema.answers import ChosenImage
from dualread.schema.base import TOGETHER, ConfiguredPlugin, NoSettings, Section
from dualread.seeding import generator

_PICTURES_IN_MEMORY = 32
# The module of a plugin, its settings as JSON, and the role of the images that it changes, unless it changes all: a
# change can be a part of a key.
Change = tuple[str, str] | tuple[str, str, str]


def unchanged(picture: Image, settings: Section, rng: np.random.Generator) -> Image:
    """Return the picture as it is: what plugins do that choose a whole image."""
    return picture


def rows_shown(manifest: pl.DataFrame, images: Sequence[ConfiguredPlugin], pairs: pl.DataFrame | None) -> pl.DataFrame:
    """Return the rows of the manifest that are asked, with the image that is shown and its reference answers.

    `images` are the changes of the condition and of the view, of which the last one that chooses an image decides;
    `pairs` is the pairs table of the same split, None if there are none.
    """
    choosing = [plugin for plugin in map(_loaded, images) if hasattr(plugin, "choose")]
    rows = choosing[-1].choose(manifest, pairs) if choosing else manifest
    of_roles = [image for image in images if isinstance(image, ChosenImage) and image.role is not None]
    if exchanged := [image.module for image in of_roles if _loaded(image).change is unchanged]:
        raise ArtifactError(
            f"image: {exchanged[0]} replaces all images of a question, and a role is named. Leave the role out."
        )
    for role in {image.role for image in of_roles}:
        without = rows.filter(~pl.col("image_roles").list.contains(role))["sample_id"]
        if len(without):
            raise ArtifactError(
                f"image: the image of the role {role!r} is to be changed, and {len(without)} questions show none, such"
                f" as {without[0]}. Expected one in each. Correct the role, or name another data set."
            )
    return rows


def changes_of(images: Sequence[ConfiguredPlugin]) -> tuple[Change, ...]:
    """Return what is done to a picture: the images without those that only choose one, in a form that can be a key."""
    changing = [image for image in images if _loaded(image).change is not unchanged]
    changes = [(image.module, json.dumps(dict(image.settings), sort_keys=True)) for image in changing]
    roles = [image.role if isinstance(image, ChosenImage) else None for image in changing]
    return tuple(change if role is None else (*change, role) for change, role in zip(changes, roles, strict=True))


@dataclass(frozen=True, kw_only=True)
class ChangedImage:
    """A picture that is made when it is called, because those of a whole data set would not fit into memory.

    `source` is the image that is changed, or its file; `content`, a digest of its content, seeds what is drawn; `draw`
    is the number of the draw.
    """

    source: Path | Image
    content: str
    changes: tuple[tuple[str, str], ...]
    draw: int = 0

    def __call__(self) -> Image:
        """Return the picture."""
        return _from_file(self) if isinstance(self.source, Path) else _changed(self.source, self)


# An image that a question shows: a file, a picture, or one that is made when it is needed.
Shown = Path | Image | ChangedImage


def shown_images(
    sources: Sequence[Path | Image], contents: Sequence[str], roles: Sequence[str], changes: Sequence[Change], draw: int
) -> tuple[str, tuple[Shown, ...]]:
    """Return a name to sort by, and what is shown in place of the images of a question, or of their files.

    `contents` are digests of their contents, `roles` their roles, or empty; `changes` are those of all, or of a role.
    """
    names, shown = [], []
    for source, content, role in zip(sources, contents, roles or [None] * len(sources), strict=True):
        of_role = tuple((change[0], change[1]) for change in changes if change[2:] in ((), (role,)))
        name, image = _shown_image(source, content, of_role, draw)
        names.append(name)
        shown += [] if image is None else [image]
    return TOGETHER.join(names), tuple(shown)


def _shown_image(
    source: Path | Image, content: str, changes: tuple[tuple[str, str], ...], draw: int
) -> tuple[str, Shown | None]:
    if any(_of(change, "NO_IMAGE") for change in changes):
        return "no image", None
    if len(changes) == 1 and _of(changes[0], "ONE_PER_SIZE"):
        size = _size(source) if isinstance(source, Path) else source.size
        return f"{changes[0][0].rpartition('.')[2]} {size[0]}x{size[1]}", _one_per_size(changes[0], size)
    if not changes:
        return content, source
    names = " ".join(f"{module.rpartition('.')[2]} {settings}" for module, settings in changes)
    return f"{content} {draw} {names}", ChangedImage(source=source, content=content, changes=changes, draw=draw)


def _of(change: tuple[str, str], constant: str) -> bool:
    return getattr(plugins.load_module(change[0]), constant, False)


def _loaded(image: ConfiguredPlugin) -> ModuleType:
    return plugins.load_module(image.module)


@functools.lru_cache(maxsize=1)  # all draws of the changes of one image follow each other
def _opened(file: Path) -> Image:
    return open_image(file)


# Prompts about one image often follow each other.
@functools.lru_cache(maxsize=_PICTURES_IN_MEMORY)
def _from_file(image: ChangedImage) -> Image:
    assert isinstance(image.source, Path)
    return _changed(_opened(image.source).copy(), image)  # a change may draw into it


def _changed(picture: Image, image: ChangedImage) -> Image:
    for module, settings in image.changes:
        plugin, rng = plugins.load_module(module), generator("image", module, image.content, image.draw)
        chosen = getattr(plugin, "Settings", NoSettings).from_spec(json.loads(settings), f"{module}: settings")
        picture = plugin.change(picture, chosen, rng)
    return picture


@functools.cache  # called once for every question about an image
def _size(path: Path) -> tuple[int, int]:
    return open_image(path).size


@functools.cache  # one per size: one per question would fill the memory
def _one_per_size(change: tuple[str, str], size: tuple[int, int]) -> Image:
    from PIL import Image as pillow

    return ChangedImage(source=pillow.new("RGB", size), content="", changes=(change,))()


def array_of(picture: Image) -> np.ndarray:
    """Return the levels of a picture, float64 [height, width, 3], from 0 to 255."""
    return np.asarray(picture, dtype=np.float64)


def picture_of(levels: Any) -> Image:
    """Return the picture of levels [height, width, 3]: rounded, and cut off at 0 and 255."""
    from PIL import Image as pillow

    return pillow.fromarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8), "RGB")
