"""Labels of sentences about drawn images, by hand and for every scene."""

from dataclasses import replace

import numpy as np
import pytest

from dualread.grading.claim_labels.attributes import SENTENCES, VALUES, is_supported, sentences_of, statements
from dualread.training.phantoms import reports
from dualread.training.phantoms.scene import COLORS, MODALITIES, PLANES, POSITIONS, REGIONS, SHAPES, SIZES, sample_scene

LESIONS = "Axial CT image. Image of the chest.\nTwo lesions in this image. Small in size. Oval is said elsewhere."
CLEAR = "MRI in coronal plane. The head is shown. There is evidence of no lesion."


@pytest.mark.parametrize(
    ("sentence", "references", "label"),
    [
        ("CT in axial plane.", [LESIONS], True),  # the same in other words
        ("CT in axial plane.", ["Axial CT image."], True),  # which is all that the reference states
        ("CT in axial plane.", [CLEAR], False),
        ("CT in axial plane.", [CLEAR, LESIONS], True),  # any of several references will do
        ("  axial\n ct image ", [LESIONS], True),  # case, white space and the full stop do not count
        ("Axial MRI image.", [LESIONS], False),  # one of two statements is wrong
        ("Two lesions in the upper left quadrant.", [LESIONS], False),  # the reference does not say where
        ("No lesion in this image.", [LESIONS], False),
        ("No lesion in this image.", [CLEAR], True),
        ("The size is small.", [LESIONS], True),
        ("The size is small.", [CLEAR], False),  # of what is not there
        ("Axial ultrasound image.", [LESIONS], None),
        ("Oval is said elsewhere.", [LESIONS], None),
        ("Small in size and round.", [LESIONS], None),
        ("", [LESIONS], None),
    ],
)
def test_labels_by_hand(sentence, references, label):
    assert is_supported(sentence, references) is label


def test_the_values_are_those_of_scenes():
    counts = ("no lesion", "one lesion", "two lesions", "three lesions")
    assert list(VALUES.values()) == [PLANES, MODALITIES, REGIONS, counts, POSITIONS, SIZES, SHAPES, COLORS]


def test_every_wording_states_what_it_names():
    for names, wordings in SENTENCES.items():
        for wording in wordings:
            values = {name: VALUES[name][-1] for name in names}
            assert statements(wording.format(**values)) == values


def test_a_report_supports_itself_and_another_one_but_for_what_changed():
    rng = np.random.default_rng(0)
    changes = {"modality": MODALITIES, "plane": PLANES, "region": REGIONS, "lesion_position": POSITIONS}
    changes |= {"lesion_size": SIZES, "lesion_shape": SHAPES, "lesion_color": COLORS, "lesion_count": (1, 2, 3)}
    lengths = set()
    for k in range(200):
        scene = replace(sample_scene(rng), lesion_count=int(rng.integers(1, 4)) if k % 4 else 0)
        report = reports.sentences(scene, k)
        lengths.add(len(report))
        assert sentences_of("\n".join(report)) == report
        assert all(is_supported(sentence, [" ".join(report)]) for sentence in report)
        for name, values in list(changes.items())[: None if scene.lesion_count else 3]:
            now = getattr(scene, name)
            changed = replace(scene, **{name: values[(values.index(now) + 1) % len(values)]})
            [attribute] = {x for x, v in reports.attributes(scene).items() if reports.attributes(changed)[x] != v}
            other = " ".join(reports.sentences(changed, "other", k))
            labels = [is_supported(sentence, [other]) for sentence in report]
            assert labels == [attribute not in statements(sentence) for sentence in report]
            assert labels.count(False) == 1
    assert lengths == {3, 4, 5, 6}
