"""Examples for the first click: drawn pairs of images, and a question that has another answer on the second one.

A reader's folder holds no image, because those of a data set are not ours to pass on. Phantoms can be drawn anywhere,
and the actors of the embedded study were trained on such.
"""

from base64 import b64encode
from dataclasses import dataclass, replace
from io import BytesIO

from PIL import Image

from dualread.seeding import generator
from dualread.training.phantoms.scene import Scene, draw

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
_HAZE = 0.9  # that of the hazy images of the studies
_BLACK = replace(
    _WITH_LESION, modality="mri", region="head", lesion_shape="oval", lesion_color="black", lesion_position="lower left"
)


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
    def addresses(self) -> tuple[str, str]:
        """Both images as addresses of PNGs, "data:image/png;base64,...". What both show looks the same in both."""
        addresses = []
        for scene in (self.scene, self.donor):
            Image.fromarray(draw(scene, generator("demo", self.shown))).save(file := BytesIO(), format="PNG")
            addresses.append(f"data:image/png;base64,{b64encode(file.getvalue()).decode()}")
        return addresses[0], addresses[1]


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
