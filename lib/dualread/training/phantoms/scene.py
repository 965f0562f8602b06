"""Scenes: what a phantom shows, and how it is drawn.

A scene is a region of the body in one modality and plane, with up to three equal lesions in one quadrant. Everything
that a question asks about is a field of `Scene`. Drawing adds variation that no question asks about: jitter, noise and
a bias field. Left and right are those of the image, not of the patient.

Some images lie behind a haze, which makes every question about them hard: the contrast is low, and lumps of the size of
organs and lesions suggest what is not there. So it is known which images are hard, and a model can see which ones are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from PIL import Image

MODALITIES = ("ct", "mri", "x-ray")
PLANES = ("axial", "coronal", "sagittal")
REGIONS = ("chest", "abdomen", "head", "pelvis")
POSITIONS = ("upper left", "upper right", "lower left", "lower right")
SIZES = ("small", "large")
SHAPES = ("round", "oval", "irregular")
COLORS = ("white", "black")


@dataclass(frozen=True, kw_only=True)
class Style:
    """What the images of one phantom hospital look like: how often they show what, and how hard it is to see.

    Shares of modalities, regions and 0 to 3 lesions are relative: they need not add up to 1. `small`, `faint` (lesions
    differ little from the tissue) and `hazy` are shares of images, in [0, 1]; `noise` is the smallest and largest
    standard deviation of the pixel noise, where gray levels are in [0, 1]; `tint` has factors of red, green and blue.
    """

    modalities: Mapping[str, float] = field(default_factory=lambda: MappingProxyType(dict.fromkeys(MODALITIES, 1.0)))
    regions: Mapping[str, float] = field(default_factory=lambda: MappingProxyType(dict.fromkeys(REGIONS, 1.0)))
    lesion_counts: tuple[float, float, float, float] = (0.35, 0.35, 0.15, 0.15)
    small: float = 0.4
    faint: float = 0.1
    hazy: float = 0.03
    noise: tuple[float, float] = (0.02, 0.06)
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)


HOSPITAL = Style()

_HAZE = 0.9  # of a hazy image: a tiny model answers little better than by guessing


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What one image shows: 0 to 3 lesions of one kind in one quadrant; without any, other fields about lesions mean
    nothing.

    The `contrast` of lesions goes from 0 (invisible) to 1 (black or white). `haze` is the share of the contrast of the
    whole image, in [0, 1], that a haze takes away; it adds lumps instead. `noise` is the standard deviation of the
    pixel noise, and `tint` as in `Style`. `wording` is the annotator, 0 or 1: both ask the same questions and write
    some of them differently.
    """

    modality: str
    region: str
    plane: str
    lesion_count: int
    lesion_size: str
    lesion_shape: str
    lesion_color: str
    lesion_position: str
    contrast: float = 1.0
    haze: float = 0.0
    noise: float = 0.05
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)
    wording: int = 0


def sample_scene(rng: np.random.Generator, style: Style = HOSPITAL) -> Scene:
    """Draw a scene at random from `style`. The number of random numbers taken from `rng` is always the same."""
    modality = _pick(rng, style.modalities)
    # A chest X-ray is taken from the front or from the side; slices come in all three planes.
    planes = {"x-ray": {"coronal": 0.6, "sagittal": 0.4}}.get(
        modality, {"axial": 0.5, "coronal": 0.25, "sagittal": 0.25}
    )
    return Scene(
        modality=modality,
        region=_pick(rng, style.regions),
        plane=_pick(rng, planes),
        lesion_count=int(_pick(rng, dict(enumerate(style.lesion_counts)))),
        lesion_size=_pick(rng, {"small": style.small, "large": 1 - style.small}),
        lesion_shape=_pick(rng, {"round": 0.4, "oval": 0.3, "irregular": 0.3}),
        lesion_color=_pick(rng, dict.fromkeys(COLORS, 0.5)),
        lesion_position=_pick(rng, dict.fromkeys(POSITIONS, 0.25)),
        contrast=_pick(rng, {0.55: style.faint, 1.0: 1 - style.faint}),
        haze=_pick(rng, {_HAZE: style.hazy, 0.0: 1 - style.hazy}),
        noise=float(rng.uniform(*style.noise)),
        tint=style.tint,
        wording=_pick(rng, {0: 0.6, 1: 0.4}),
    )


@dataclass(kw_only=True)
class Canvas:
    """A square gray picture [size, size], 0 is black and 1 is white, and the coordinates of the centers of its pixels.

    Coordinates run from 0 to 63, to the right and down, whatever the number of pixels, so that a scene looks the same
    at every resolution. Values outside [0, 1] are allowed while painting.
    """

    gray: np.ndarray
    x: np.ndarray
    y: np.ndarray

    @classmethod
    def blank(cls, size: int) -> "Canvas":
        """Return a black canvas of `size` x `size` pixels."""
        y, x = np.mgrid[0:size, 0:size] * (63 / (size - 1))
        return cls(gray=np.zeros((size, size)), x=x, y=y)

    def ellipse(self, x: float, y: float, a: float, b: float, angle: float = 0.0) -> np.ndarray:
        """Return each pixel's squared distance from (x, y) in units of the half axes `a` and `b`.

        It is 0 at the center and 1 on the ellipse. The half axis `a` points right; `angle` turns it down, in radians.
        """
        cos, sin = np.cos(angle), np.sin(angle)
        along = (self.x - x) * cos + (self.y - y) * sin
        across = (self.y - y) * cos - (self.x - x) * sin
        return (along / a) ** 2 + (across / b) ** 2

    @staticmethod
    def inside(distance: np.ndarray, sharpness: float) -> np.ndarray:
        """Return how much of each pixel lies inside a shape, from 0 to 1, with a soft edge where `distance` is 1."""
        return 1 / (1 + np.exp(np.clip(sharpness * (distance - 1), -30, 30)))

    def lumps(self, rng: np.random.Generator) -> np.ndarray:
        """Return a smooth random field [size, size] with standard deviation 1, whose lumps are a twelfth of it wide.

        References:
            Rolland and Barrett, "Effect of random background inhomogeneity on observer detection performance", JOSA A
            9(5), 649-658 (1992), for lumpy backgrounds in studies of how well something is seen.
        """
        coarse = Image.fromarray(rng.normal(0, 1, (12, 12)).astype(np.float32))
        lumps = np.asarray(coarse.resize(self.gray.shape, Image.Resampling.BICUBIC), dtype=np.float64)
        return lumps / lumps.std()

    def paint(self, distance: np.ndarray, gray: float, opacity: float = 1.0) -> None:
        """Paint the inside of a shape in the gray level `gray`."""
        weight = opacity * self.inside(distance, 10)
        self.gray[...] = self.gray * (1 - weight) + gray * weight


def draw(scene: Scene, rng: np.random.Generator, size: int = 64) -> np.ndarray:
    """Return a picture of `scene`, as uint8 [size, size, 3]; position, proportions and noise vary with `rng`."""
    canvas = Canvas.blank(size)
    width, height = (_HEADS if scene.region == "head" else _TRUNKS)[scene.plane]
    body = _Body(
        x=32 + rng.normal(0, 1),
        y=32 + rng.normal(0, 1),
        width=width * (1 + rng.normal(0, 0.04)),
        height=height * (1 + rng.normal(0, 0.04)),
    )
    _draw_body(canvas, scene, body)
    _ORGANS[scene.region](canvas, scene.modality, body)
    if scene.modality != "mri" and scene.region != "head" and scene.plane != "sagittal":
        down, high = (0.72, 3.5) if scene.plane == "axial" else (0.0, body.height * 0.75)
        canvas.paint(canvas.ellipse(*body.at(0, down), 3.2, high), 0.82)  # the spine
    _draw_lesions(canvas, scene, body, rng)
    if scene.modality == "mri":  # coil sensitivity
        canvas.gray *= 1 + 0.12 * np.sin(canvas.x / 11 + rng.uniform(0, 2 * np.pi))
    canvas.gray += scene.haze * (0.4 + 0.25 * canvas.lumps(rng) - canvas.gray)
    canvas.gray += rng.normal(0, scene.noise, canvas.gray.shape)
    return np.clip(canvas.gray[..., None] * np.array(scene.tint) * 255 + 0.5, 0, 255).astype(np.uint8)


@dataclass(frozen=True, kw_only=True)
class _Body:
    """The outline of the body, an ellipse: its center and half axes, in the coordinates of a `Canvas`."""

    x: float
    y: float
    width: float
    height: float

    def at(self, right: float, down: float) -> tuple[float, float]:
        """Return the point `right` half axes to the right of the center and `down` half axes below it."""
        return self.x + right * self.width, self.y + down * self.height


def _pick(rng: np.random.Generator, shares: Mapping):
    values = list(shares)
    weights = np.array([shares[value] for value in values], dtype=np.float64)
    return values[int(rng.choice(len(values), p=weights / weights.sum()))]


# Half axes of the body's outline in each plane.
_HEADS = {"axial": (20.0, 24.0), "coronal": (19.0, 20.0), "sagittal": (25.0, 19.0)}
_TRUNKS = {"axial": (28.0, 19.0), "coronal": (21.0, 29.0), "sagittal": (14.0, 29.0)}
_TISSUE = {"ct": 0.45, "mri": 0.3, "x-ray": 0.6}


def _draw_body(canvas: Canvas, scene: Scene, body: _Body) -> None:
    distance = np.sqrt(canvas.ellipse(body.x, body.y, body.width, body.height))
    inside = canvas.inside(distance**2, 20)
    rim = np.exp(-(((distance - 0.93) / 0.05) ** 2))
    canvas.gray += _TISSUE[scene.modality] * inside
    if scene.modality == "ct":  # skull, or skin
        np.maximum(canvas.gray, (0.95 if scene.region == "head" else 0.6) * rim, out=canvas.gray)
    elif scene.modality == "mri":  # fat
        canvas.gray += 0.4 * rim
    else:  # a projection is brightest where the body is thickest, and the film is never black
        canvas.gray += 0.12 * (1 - np.minimum(distance, 1)) + 0.06


def _draw_chest(canvas: Canvas, modality: str, body: _Body) -> None:
    tissue = _TISSUE[modality]
    for side in (-1, 1):
        lung = canvas.ellipse(*body.at(side * 0.45, -0.05), body.width * 0.34, body.height * 0.62)
        canvas.paint(lung, 0.06 if modality == "mri" else tissue - 0.3)
    canvas.paint(canvas.ellipse(*body.at(0.08, 0.2), body.width * 0.2, body.height * 0.25), tissue + 0.25)
    if modality == "x-ray":
        inside = canvas.inside(canvas.ellipse(body.x, body.y, body.width, body.height), 20)
        for k in range(4):
            rib = canvas.y - (body.y + (k * 0.3 - 0.5) * body.height) - 0.006 * (canvas.x - body.x) ** 2
            canvas.gray += 0.12 * np.exp(-((rib / 1.2) ** 2)) * inside


def _draw_abdomen(canvas: Canvas, modality: str, body: _Body) -> None:
    tissue = _TISSUE[modality]
    liver = canvas.ellipse(*body.at(-0.35, -0.25), body.width * 0.5, body.height * 0.42, 0.3)
    canvas.paint(liver, tissue + 0.15)
    canvas.paint(canvas.ellipse(*body.at(0.55, -0.3), body.width * 0.2, body.height * 0.25), tissue + 0.22)
    for side in (-1, 1):
        kidney = canvas.ellipse(*body.at(side * 0.45, 0.42), body.width * 0.14, body.height * 0.2)
        canvas.paint(kidney, tissue + 0.3)


def _draw_head(canvas: Canvas, modality: str, body: _Body) -> None:
    brain = canvas.ellipse(body.x, body.y, body.width * 0.82, body.height * 0.82)
    canvas.paint(brain, {"ct": 0.55, "mri": 0.6, "x-ray": 0.7}[modality])
    for side in (-1, 1):
        ventricle = canvas.ellipse(*body.at(side * 0.18, 0), body.width * 0.08, body.height * 0.28, side * 0.2)
        canvas.paint(ventricle, 0.5 if modality == "x-ray" else 0.12)


def _draw_pelvis(canvas: Canvas, modality: str, body: _Body) -> None:
    bladder = canvas.ellipse(*body.at(0, -0.05), body.width * 0.36, body.height * 0.36)
    canvas.paint(bladder, {"ct": 0.28, "mri": 0.85, "x-ray": 0.78}[modality])
    for side in (-1, 1):
        hip = canvas.ellipse(*body.at(side * 0.7, 0.25), body.width * 0.18, body.height * 0.26)
        canvas.paint(hip, 0.12 if modality == "mri" else 0.9)


_ORGANS = {"chest": _draw_chest, "abdomen": _draw_abdomen, "head": _draw_head, "pelvis": _draw_pelvis}


def _draw_lesions(canvas: Canvas, scene: Scene, body: _Body, rng: np.random.Generator) -> None:
    vertical, horizontal = scene.lesion_position.split()
    center = body.at(-0.45 if horizontal == "left" else 0.45, -0.45 if vertical == "upper" else 0.45)
    radius = {"small": 3.6, "large": 6.4}[scene.lesion_size]
    # The lesions are spread evenly around the middle of their quadrant, in a random direction.
    spread = 0 if scene.lesion_count == 1 else radius * 1.15 + 0.8
    turn = rng.uniform(0, 2 * np.pi)
    for k in range(scene.lesion_count):
        angle = turn + 2 * np.pi * k / scene.lesion_count
        x = center[0] + spread * np.cos(angle) + rng.normal(0, 0.8)
        y = center[1] + spread * np.sin(angle) + rng.normal(0, 0.8)
        lesion = _lesion(canvas, scene.lesion_shape, x, y, radius * (1 + rng.normal(0, 0.06)), rng.uniform(0, np.pi))
        level, rim = (1.0, 0.1) if scene.lesion_color == "white" else (0.0, 0.8)
        canvas.paint(lesion / 1.5, rim, 0.6 * scene.contrast)  # without it, a black lesion in a lung would be invisible
        canvas.paint(lesion, level, scene.contrast)


def _lesion(canvas: Canvas, shape: str, x: float, y: float, radius: float, angle: float) -> np.ndarray:
    if shape == "oval":
        return canvas.ellipse(x, y, radius * 1.55, radius * 0.65, angle)
    circle = canvas.ellipse(x, y, radius, radius)
    if shape == "irregular":
        around = np.arctan2(canvas.y - y, canvas.x - x)
        circle = circle / (1 + 0.4 * np.sin(5 * around + angle)) ** 2
    return circle
