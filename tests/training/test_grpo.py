import math
import types

import numpy as np
import polars as pl
import pytest
import torch

from dualread import prompts
from dualread.conditions import Asked
from dualread.errors import ConfigError
from dualread.training._trainer import Job, _reward_function
from dualread.training.grpo import train
from tiny import GRPO, MODEL, image


def by_length(texts):
    """A reward with spread inside every group, so that gradients are not zero."""
    return [float(len(text)) for text in texts]


REWARD = types.SimpleNamespace(
    reward=lambda completions, reference_answers, **columns: by_length(completions),
    terms=lambda completions, reference_answers, **columns: {
        "length": by_length(completions),
        "confidence": [math.nan for _ in completions],
    },
)


@pytest.fixture
def run(tiny, tmp_path):
    for i in range(3):
        image(i).save(tmp_path / f"{i}.png")
    questions = [
        Asked(sample_id=str(i), text=prompts.render("shared", question=q), image_file=f"{i}.png", image_id=str(i))
        for i, q in enumerate(["Is this a CT scan?", "What is the size of the lesion?", "Where?"])
    ]

    def run(name, seed=1, **changes):
        log = train(
            Job(
                checkpoint=tiny.checkpoint,
                questions=questions,
                references=[["yes"], ["large"], ["left"]],
                images=tmp_path,
                backbone=tiny.backbone,
                backbone_settings=MODEL,
                reward=REWARD,
                settings=GRPO | changes,
                seed=seed,
                out=tmp_path / name,
                scratch=tmp_path / "scratch",
            )
        )
        weights = tiny.backbone.load_model(tmp_path / name, MODEL).state_dict()
        return pl.DataFrame(log), weights

    return run


def test_training_moves_the_whole_model_and_keeps_a_log(tiny, run):
    before = tiny.backbone.load_model(tiny.checkpoint, MODEL).state_dict()
    log, after = run("actor")
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert any("visual" in name or "vision" in name for name in moved)  # the vision tower is trained too
    assert any("language_model" in name for name in moved)
    assert log.filter(pl.col("name") == "reward")["step"].to_list() == [1, 2]
    assert log.filter(pl.col("name") == "terms/length/mean").height == 2
    assert log.filter(pl.col("name") == "terms/confidence/mean").height == 0  # undefined is not logged as a number
    assert (log.filter(pl.col("name") == "gradient_norm")["value"] > 0).all()
    assert log.filter(pl.col("name") == "kl").height == 0


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(run):
    _, first = run("first")
    _, again = run("again")
    _, other = run("other", seed=2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_small_forward_passes_accumulate_to_one_step(run):
    log, _ = run("accumulated", completions_per_pass=2)
    assert log.filter(pl.col("name") == "reward")["step"].to_list() == [1, 2]


def test_a_step_that_does_not_divide_into_passes_is_refused(run):
    with pytest.raises(ConfigError, match=r"a step of 4 completions .* completions_per_pass = 3 on 1 processes"):
        run("uneven", completions_per_pass=3)


def test_terms_reach_the_log_without_undefined_values():
    logged = {}
    reward = types.SimpleNamespace(
        reward=lambda texts, references, bonus: bonus,
        terms=lambda texts, references, bonus: {"confidence": [0.5, math.nan]},
    )
    total = _reward_function(reward)
    values = total(
        completions=[[{"content": "a"}], [{"content": "b"}]],
        reference_answers=[["a"], ["a"]],
        log_metric=lambda name, value: logged.__setitem__(name, value),
        bonus=[1.0, 0.0],
    )
    assert values == [1.0, 0.0]
    assert logged == {"terms/confidence/mean": 0.5, "terms/confidence/std": 0.0}
    assert not np.isnan(list(logged.values())).any()
