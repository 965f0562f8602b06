import numpy as np
import pytest

from dualread.models.replay.forward import VECTORS
from dualread.models.replay.rules import read_of_example


def states(n, factor):
    return ((np.arange(3 * n) * factor) % 17 - 8).reshape(n, 3) / 4


def test_the_example_by_hand():
    """The first answer is tokens 5 to 7, and its block ends in token 9; all of the second completion stands for it."""
    found = {name: np.reshape(values, (2, 3)) for name, values in read_of_example().items()}
    assert found.keys() == set(VECTORS)
    first, second = states(13, 5), states(7, 5)
    expected = {
        "h_pre": [first[0], second[0]],
        "h_close": [first[1 + 9], second[1 + 5]],
        "h_ans": [first[[6, 7, 8]].mean(0), second[1:].mean(0)],
        "h_global": [states(9, 11).mean(0)] * 2,
        "h_mid": [states(12, 7)[9], states(6, 7)[4]],  # the last tokens before those that end a turn
    }
    image = states(9, 11)
    expected["h_evid"] = []
    for answer in expected["h_ans"]:
        cosine = image @ answer / np.linalg.norm(image, axis=1) / np.linalg.norm(answer)
        weights = np.exp(cosine / 0.5)
        expected["h_evid"].append(weights @ image / weights.sum())
    thinking = read_of_example("</think>")
    assert thinking["h_think"] == pytest.approx(first[1 + 2], abs=6e-4)  # the second completion never ends to think
    assert thinking["h_ans"] == pytest.approx([*first[[6, 7, 8]].mean(0), *second[1 + 5]], abs=6e-4)
    for name, vectors in expected.items():
        assert found[name] == pytest.approx(np.array(vectors), abs=6e-4), name
