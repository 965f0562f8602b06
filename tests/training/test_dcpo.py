import types

import numpy as np
import polars as pl
import pytest
import torch
from tests.architectures import second_in_rest
from trl.trainer.grpo_trainer import GRPOTrainer

from dualread.errors import ConfigError
from dualread.training.dcpo import Dcpo, confidence_start, group_normalized, train
from dualread.training.rewards import dcpo as reward
from dualread.training.rewards import rlvr
from dualread.training.rewards.base import verdicts

# --- Pure functions


def test_groups_are_normalized_by_name_and_not_by_position():
    # a: 1, 0, 0 -> mean 1/3, sample deviation sqrt((4 + 1 + 1) / 9 / 2) = 1 / sqrt(3). b: 2, 4 -> mean 3, sqrt(2).
    found = group_normalized([1.0, 2.0, 0.0, 4.0, 0.0], ["a", "b", "a", "b", "a"])
    a, b = 3**-0.5 + 1e-4, 2**0.5 + 1e-4
    assert found == pytest.approx([2 / 3 / a, -1 / b, -1 / 3 / a, 1 / b, -1 / 3 / a])


def test_a_group_without_spread_has_no_advantage():
    assert group_normalized([0.5, 0.5, 0.5, 1.0], ["a", "a", "a", "alone"]) == [0.0] * 4
    assert group_normalized([1.0, 3.0, 6.0, 8.0], ["a", "a", "b", "b"], "none") == [-1.0, 1.0, -1.0, 1.0]
    of_all = np.std([1.0, 3.0, 6.0, 8.0], ddof=1) + 1e-4
    assert group_normalized([1.0, 3.0, 6.0, 8.0], ["a", "a", "b", "b"], "batch")[1] == pytest.approx(1 / of_all)


def start_of(*tokens):
    return confidence_start(range(len(tokens)), lambda ids: "".join(tokens[i] for i in ids))


@pytest.mark.parametrize(
    ("tokens", "start"),
    [
        (("<answer>", "left", "</answer>", "<confidence>", "7", "</confidence>", ""), 3),
        (("left</answer", ">\n<conf", "idence>", "7</confidence>", ""), 1),  # the straddling token belongs to the block
        (("left", "<", "confidence", ">7"), 1),
        (("<confidence>", "7", "</confidence>", "<confidence>", "8"), 3),  # the last of several
        (("<confidence>7</confidence>", "<answer>", "left"), 0),  # the block extends to the end
        (("left", " lung", ""), 3),  # no block
        (("", "<confidence>"), 1),  # a token without characters belongs to the part before the block
    ],
)
def test_the_block_starts_with_its_opening_tag(tokens, start):
    assert start_of(*tokens) == start


# --- The trainer


def test_interleaved_groups_over_two_processes(monkeypatch):
    """This is the second of two processes with two rows each."""
    pieces = ("<answer>lung</answer>", "<answer>bone</answer>", "<confidence>90</confidence>", "")
    encoder = types.SimpleNamespace(decode=lambda ids: "".join(pieces[i] for i in ids))
    trainer = types.SimpleNamespace(opened=types.SimpleNamespace(encoder=encoder))

    def judged(*texts):
        return verdicts(texts, [["lung"], ["bone"]], reward.CONTRACT)

    others = judged(
        "<answer>lung</answer><confidence>0</confidence>", "<answer>bone</answer><confidence>60</confidence>"
    )
    monkeypatch.setattr(
        "accelerate.utils.gather_object", lambda rows: [*zip("xy", others, (1.0, 1.0), strict=True), *rows]
    )
    monkeypatch.setattr("accelerate.PartialState", lambda: types.SimpleNamespace(process_index=1))
    algorithm = Dcpo(reward, types.SimpleNamespace(gamma=0.5, scale_rewards="group"))
    ids, logged = [[1, 2, 3], [0, 3]], {}
    mine = judged(*map(encoder.decode, ids))
    columns = {**algorithm.columns(trainer, ids), "sample_id": ["x", "y"], "completion_ids": ids, "more": 1}
    algorithm.note_rewards(mine, [0.0, -0.5], logged.__setitem__, **columns)
    output = {"completion_ids": torch.tensor([[1, 2, 3, 3], [0, 3, 3, 3]]), "advantages": torch.zeros(2)}
    # z + R_fmt: x 1, 0 -> mean .5, deviation 1 / sqrt(2); y 1, -.5 -> mean .25, deviation 1.5 / sqrt(2).
    # By position mine would be a group of 0 and -.5, and the first one's advantage positive.
    first, second = -0.5 / (0.5**0.5 + 1e-4), -0.75 / (1.5 * 0.5**0.5 + 1e-4)
    # R_c of x, targets .75 and .25: -|0 - .75|, -|.9 - .25| = -.75, -.65 -> mean -.7, deviation .1 / sqrt(2)
    block = 0.05 / (0.1 * 0.5**0.5 + 1e-4)
    assert algorithm.advantages(output).tolist() == [
        pytest.approx([first, block, block, 0.0]),
        pytest.approx([second, second, 0.0, 0.0]),  # no block
    ]
    # R_c of y, targets .75 and .25: -|.6 - .75|, -|.5 - .25|. Mean of -.75, -.15, -.65, -.25.
    assert logged["terms/calibration/mean"] == pytest.approx(-0.45)


@second_in_rest
def test_each_token_is_trained_with_its_own_advantage(answered, calls):
    """On a real model: which advantage is applied to which token of the loss."""
    make, ids = answered
    losses = calls(GRPOTrainer, "_compute_loss")
    log = pl.DataFrame(train(make("actor", reward=reward, gamma=0.5, steps=1)))

    # z + R_fmt: 1, 1, 0, -.5 -> mean .375; (.625^2 + .625^2 + .375^2 + .875^2) / 3 = .5625, deviation .75
    answer = [0.625 / 0.7501, 0.625 / 0.7501, -0.375 / 0.7501, -0.875 / 0.7501]
    # R_c, accuracy .5, targets .75, .75, .25, .25: -.15, -.25, -.65, -.25 -> mean -.325;
    # (.175^2 + .075^2 + .325^2 + .075^2) / 3 = .1475 / 3
    deviation = (0.1475 / 3) ** 0.5 + 1e-4
    confidence = [0.175 / deviation, 0.075 / deviation, -0.325 / deviation, answer[3]]  # the last one has no block
    expected = {
        tuple(before + block): [answer[i]] * len(before) + [confidence[i]] * len(block)
        for i, (before, block) in enumerate(ids)
    }
    [loss] = losses
    inputs = loss.arguments[2]
    rows = zip(inputs["completion_ids"], inputs["completion_mask"].bool(), inputs["advantages"], strict=True)
    found = {tuple(tokens[mask].tolist()): values[mask].tolist() for tokens, mask, values in rows}
    assert found == {tokens: pytest.approx(values) for tokens, values in expected.items()}
    # The ratio is 1, so the loss is minus the mean over completions of the mean advantage of their tokens.
    assert loss.result.item() == pytest.approx(
        -sum(sum(values) / len(values) for values in expected.values()) / 4, rel=1e-5
    )
    assert log.filter(pl.col("name") == "terms/calibration/mean")["value"].to_list() == [pytest.approx(-0.325)]


def test_a_reward_without_calibration_reward_is_refused(job):
    with pytest.raises(ConfigError, match=r"reward dualread.training.rewards.rlvr defines no `calibration_reward`"):
        train(job("actor", reward=rlvr, gamma=0.5))
