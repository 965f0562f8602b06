import dataclasses
import math
import types

import pytest
from tests.tiny import GRPO, MODEL, image

from dualread.models import prompts
from dualread.models.conditions import Asked
from dualread.models.training.job import Job


def by_length(texts):
    """A reward with spread inside every group, so that gradients are not zero."""
    return [float(len(text)) for text in texts]


LENGTH = types.SimpleNamespace(
    reward=lambda completions, reference_answers, **columns: by_length(completions),
    terms=lambda completions, reference_answers, **columns: {
        "length": by_length(completions),
        "confidence": [math.nan for _ in completions],
    },
)

# Four answers to a question whose answer is yes, each with what comes before the confidence block, and the block.
ANSWERS = [
    ("<reasoning>axial ct</reasoning>\n<answer>yes</answer>\n", "<confidence>90</confidence>"),
    ("<answer>Yes</answer>\n", "<confidence>50</confidence>"),
    ("<reasoning>upper</reasoning>\n<answer>no</answer>\n", "<confidence>90</confidence>\n"),
    ("<answer>large</answer>\n", ""),
]


@pytest.fixture
def answered(tiny, job, monkeypatch):
    """Make a job with one group of four a step whose rollouts are ANSWERS; return it and their ids, in the two parts.

    The trained model gives log-probabilities and gradients; it is only not asked to sample.
    """
    from trl.trainer.grpo_trainer import GRPOTrainer

    tokenizer = tiny.backbone.load_processor(tiny.checkpoint, MODEL).tokenizer
    ids = [[tokenizer(part, add_special_tokens=False)["input_ids"] for part in parts] for parts in ANSWERS]
    ids = [(before, [*block, tokenizer.eos_token_id]) for before, block in ids]
    sampled = [before + block for before, block in ids]
    monkeypatch.setattr(GRPOTrainer, "_generate_single_turn", lambda *_: (sampled, None))
    changes = {"prompts_per_step": 1, "group_size": 4, "warmup_fraction": 0.0}

    def make(name, **settings):
        return dataclasses.replace(job(name, **changes, **settings), references=[["yes"]] * 3)

    return make, ids


@pytest.fixture
def job(tiny, tmp_path):
    """Make a job of three questions; it writes to tmp_path / name."""
    for i in range(3):
        image(i).save(tmp_path / f"{i}.png")
    questions = [
        Asked(sample_id=str(i), text=prompts.render("shared", question=q), image_file=f"{i}.png", image_id=str(i))
        for i, q in enumerate(["Is this a CT scan?", "What is the size of the lesion?", "Where?"])
    ]

    def make(name, *, seed=1, reward=LENGTH, checkpoints=None, **settings):
        return Job(
            checkpoint=tiny.checkpoint,
            questions=questions,
            references=[["yes"], ["large"], ["left"]],
            images=tmp_path,
            backbone=tiny.backbone,
            backbone_settings=MODEL,
            reward=reward,
            settings=GRPO | settings,
            seed=seed,
            out=tmp_path / name,
            scratch=tmp_path / "scratch",
            checkpoints=checkpoints,
        )

    return make
