from dataclasses import replace

import numpy as np

from dualread.grading.canonical import canonical, question_key
from dualread.training.phantoms.questions import ask, findings
from dualread.training.phantoms.scene import Scene, sample_scene

SCENE = Scene(
    modality="mri",
    region="head",
    plane="sagittal",
    lesion_count=2,
    lesion_size="small",
    lesion_shape="oval",
    lesion_color="white",
    lesion_position="lower left",
)


def _answers(scene):
    return {question_key(q.question): q.answer for q in ask(scene)}


def test_answers_of_one_scene_by_hand():
    assert _answers(SCENE) == {
        "what modality is used to take this image": "mri",
        "is this a ct scan": "no",
        "what is the scanning plane of this image": "sagittal",
        "which organ is the main organ in this image": "brain",
        "does the picture contain liver": "no",
        "what is the function of the main organ in this image": "thinking",
        "does the picture look abnormal": "yes",
        "what kind of lesion is in this image": "nodule",
        "where is the lesion in this image": "lower left",
        "is the lesion on the left side": "yes",
        "what is the size of the lesion": "small",
        "is the lesion large": "no",
        "what is the shape of the lesion": "oval",
        "what color is the lesion": "white",
        "is the lesion white or black": "white",
        "how many lesions are in this image": "2",
    }
    assert findings(SCENE) == "sagittal mri head 2 white small oval lower left"


def test_without_a_lesion_the_lesion_fields_say_nothing():
    clear = replace(SCENE, lesion_count=0)
    other = replace(
        clear, lesion_size="large", lesion_color="black", lesion_shape="round", lesion_position="upper right"
    )
    assert ask(clear) == ask(other)
    assert findings(clear) == "sagittal mri head clear"
    answers = _answers(clear)
    assert answers["what kind of lesion is in this image"] == "none"
    assert answers["how many lesions are in this image"] == "0"
    assert answers["is the lesion on the left side"] == "no"


def test_wrong_answers_differ_and_an_answer_is_at_each_place_of_its_options_as_often():
    rng, places = np.random.default_rng(0), []
    for question in (question for _ in range(300) for question in ask(sample_scene(rng))):
        forms = [canonical(answer) for answer in (question.answer, *question.wrong_answers)]
        assert len(set(forms) - {""}) == len(forms) >= 2
        assert len(question.options) == (4 if question.answer_type == "open" else 0)
        assert set(question.options) <= {question.answer, *question.wrong_answers}
        if question.options:
            places.append(question.options.index(question.answer))
    # 3000 questions: 750 for each of four places. The bounds are wide, because equal scenes have equal places.
    assert all(600 < places.count(place) < 900 for place in range(4))
