import pytest
from tests.tiny import GRPO

from dualread.training.settings import TrainingSettings
from dualread.training.trainer import training_order


def settings(**changes) -> TrainingSettings:
    return TrainingSettings(**{**GRPO, **changes})


@pytest.mark.parametrize(
    ("n_rows", "passes", "prompts", "expected"),
    # 4919 / 128 = 38.4 -> 39 steps per pass, 117 in three passes (paper, table of hyperparameters)
    [(4919, 3, 128, 117), (128, 1, 128, 1), (129, 1, 128, 2), (5, 2, 2, 6)],
)
def test_steps(n_rows, passes, prompts, expected):
    assert settings(steps=None, passes=passes, prompts_per_step=prompts).steps_over(n_rows) == expected


def test_every_row_once_before_any_row_again():
    order = training_order(4919, steps=117, prompts_per_step=128, seed=1)
    assert len(order) == 117 * 128  # no incomplete chunk is dropped
    for start in (0, 4919, 2 * 4919):
        assert sorted(order[start : start + 4919]) == list(range(4919))


def test_different_seeds_give_different_orders():
    first, again, other = (training_order(50, steps=5, prompts_per_step=10, seed=s) for s in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()
