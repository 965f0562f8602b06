"""VAUQ by hand, and what follows from its formula."""

from dataclasses import replace

import numpy as np
import pytest

from dualread.readers import vauq
from dualread.readers.answers import ViewAnswers
from tests.readers import synthetic
from tests.readers.test_self_consistency import PLATT


def answers(whole, hidden):
    tensors = {"entropy": whole, "entropy_hidden": hidden}
    columns = {name: np.array(of, np.float32)[:, np.newaxis] for name, of in tensors.items()}
    view = ViewAnswers(name="core", source=columns.__getitem__, rows=np.arange(len(whole)))
    return replace(synthetic.examples(len(whole)).answers, views=(view,))


def scores(whole, hidden, alpha):
    return vauq.score(synthetic.reader("readers.vauq", PLATT, {"alpha": alpha}), answers(whole, hidden)).score


def test_vauq_by_hand():
    # H = .5, H' = 1.25: IS = .75, and VAUQ = .5 - .6 * .75 = .05. Equal entropies leave H. H = 2, H' = 1: 2 + .6 = 2.6.
    assert scores([0.5, 0.5, 2.0], [1.25, 0.5, 1.0], 0.6) == pytest.approx([-0.05, -0.5, -2.6])
    # Without the image's part it is the entropy alone.
    assert scores([0.5, 0.5, 2.0], [1.25, 0.5, 1.0], 0.0).tolist() == [-0.5, -0.5, -2.0]
