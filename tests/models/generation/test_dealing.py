import os
from dataclasses import dataclass

import numpy as np
import pytest

from dualread.errors import DataError, DualReadError
from dualread.models.generation.base import Decoding, Request, Weighed
from dualread.models.generation.data_parallel import DealtEngine, by_image, deal

GREEDY = Decoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=1, seed=0)


def requests(*images: str) -> list[Request]:
    return [Request(text="?", image=None, image_name=name, row=f"row {i}") for i, name in enumerate(images)]


@dataclass
class Parrot:
    """An engine that says which rows it was asked about, and on which GPU; it dies of the word `death`."""

    encoder: object = None
    stop: frozenset = frozenset()

    def generate(self, requests, decoding):
        names = {request.image_name for request in requests}
        if "bad data" in names:
            raise DataError("row 1: bad")
        if "a defect" in names:
            raise ZeroDivisionError("of nobody's making")
        if "death" in names:
            os._exit(1)
        return [[(request.row, os.environ["CUDA_VISIBLE_DEVICES"])] for request in requests]

    def weigh(self, requests, choices):
        of = zip(requests, choices, strict=True)
        return [Weighed(prompt_token_ids=(int(r.row[4:]),), log_probs=np.array(c, float)) for r, c in of]


def open_parrot(name):
    assert name == "an argument"
    return Parrot()


@pytest.fixture
def two():
    return DealtEngine(open_parrot, ("an argument",), ["3", "5"], None, frozenset({1}))


def test_rows_of_one_image_are_side_by_side_in_the_order_they_came():
    assert by_image(requests("b", "a", "b", "a")) == [1, 3, 0, 2]


def test_parts_are_of_equal_size_and_images_stay_together():
    assert deal(requests("b", "a", "b", "a"), 2) == [[1, 3], [0, 2]]
    assert deal(requests("b", "a", "b", "a", "c"), 2) == [[1, 3, 0], [2, 4]]
    assert deal(requests("a"), 3) == [[0], [], []]


def test_answers_come_in_the_order_of_the_requests_each_from_a_gpu_of_its_own(two):
    answers = two.generate(requests("b", "a", "b", "a"), GREEDY)
    assert answers == [[("row 0", "5")], [("row 1", "3")], [("row 2", "5")], [("row 3", "3")]]
    weighed = two.weigh(requests("b", "a", "b"), [[0.5], [1.5, 2.5], [3.5]])
    assert [(w.prompt_token_ids, w.log_probs.tolist()) for w in weighed] == [
        ((0,), [0.5]),
        ((1,), [1.5, 2.5]),
        ((2,), [3.5]),
    ]


def test_what_goes_wrong_in_a_process_is_said_here(two):
    with pytest.raises(DataError, match="row 1: bad"):
        two.generate(requests("a", "bad data"), GREEDY)
    with pytest.raises(RuntimeError, match="ZeroDivisionError: of nobody's making"):
        two.generate(requests("a", "a defect"), GREEDY)
    with pytest.raises(DualReadError, match=r"process 1 of 2 died, .*max_num_seqs"):
        two.generate(requests("a", "death"), GREEDY)
