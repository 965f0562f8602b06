import dataclasses
import math
import os
import textwrap
import types

import pytest
import torch
from tests import jobs, specs
from tests import tiny as builder
from tests.architectures import one_architecture as pytest_generate_tests  # noqa: F401
from tests.hospital import table_of
from tests.jobs import by_length
from tests.tiny import GRPO, MODEL
from trl.trainer.grpo_trainer import GRPOTrainer

from dualread import plugins
from dualread.models.backbones.processor import load_processor
from dualread.training import _grpo_trainer, dcpo, grpo, rewards, rollouts, state_signal, vl_calibration
from dualread.training.job import Assignment

LENGTH = types.SimpleNamespace(
    CONTRACT="single",
    reward=by_length,
    terms=lambda found, **columns: {"length": by_length(found), "undefined": [math.nan for _ in found]},
)

# Four completions for a question whose answer is yes, each split before its confidence block.
ANSWERS = [
    ("<reasoning>axial ct</reasoning>\n<answer>yes</answer>\n", "<confidence>90</confidence>"),
    ("<answer>Yes</answer>\n", "<confidence>50</confidence>"),
    ("<reasoning>upper</reasoning>\n<answer>no</answer>\n", "<confidence>90</confidence>\n"),
    ("<answer>large</answer>\n", ""),
]


@pytest.fixture
def answered(tiny, job, monkeypatch):
    """Return a function that makes a job with the rollouts ANSWERS, one group of four per step; and their ids, split.

    Only sampling is replaced; log-probabilities and gradients are those of the trained model.
    """
    tokenizer = load_processor(tiny.checkpoint, MODEL).tokenizer
    ids = [[tokenizer(part, add_special_tokens=False)["input_ids"] for part in parts] for parts in ANSWERS]
    ids = [(before, [*block, tokenizer.eos_token_id]) for before, block in ids]
    sampled = [before + block for before, block in ids]
    monkeypatch.setattr(_grpo_trainer, "roll_out", lambda *_, **__: sampled)
    changes = {"prompts_per_step": 1, "group_size": 4, "warmup_fraction": 0.0}

    def make(name, **settings):
        return dataclasses.replace(job(name, **changes, **settings), references=[["yes"]] * 3)

    return make, ids


@pytest.fixture
def steps(monkeypatch):
    """The weights before each step of AdamW, and the gradients that it gets, both by name."""
    found, model, step = [], [], torch.optim.AdamW.step
    read = GRPOTrainer.training_step

    def noted(self, *arguments):
        model[:] = [self.accelerator.unwrap_model(self.model)]
        return read(self, *arguments)

    def kept(self, *arguments, **named):
        of = dict(model[0].named_parameters())
        weights = {name: weight.detach().clone() for name, weight in of.items()}
        found.append((weights, {name: weight.grad.clone() for name, weight in of.items() if weight.grad is not None}))
        return step(self, *arguments, **named)

    monkeypatch.setattr(GRPOTrainer, "training_step", noted)
    monkeypatch.setattr(torch.optim.AdamW, "step", kept)
    return found


@pytest.fixture
def calls(monkeypatch):
    """Return a function that notes the calls of a function: their arguments without names, and their results."""

    def note(owner, name):
        seen, right = [], getattr(owner, name)

        def noted(*arguments, **named):
            seen.append(types.SimpleNamespace(arguments=arguments, result=right(*arguments, **named)))
            return seen[-1].result

        monkeypatch.setattr(owner, name, noted)
        return seen

    return note


COMPLETION_TYPE = 0  # the token type of a completion in both families


def with_completion(inputs, ids):
    """Return the inputs of a prompt and the ids behind it; one row, without padding."""
    given = dict(inputs)
    for name, value in inputs.items():
        if value.shape == inputs["input_ids"].shape:
            after = ids if name == "input_ids" else [COMPLETION_TYPE] * len(ids)
            given[name] = torch.cat([value, torch.tensor([after], dtype=value.dtype)], dim=1)
    return given | {"attention_mask": torch.ones_like(given["input_ids"])}


def _settings(given):
    """Return settings of GRPO, or of the first algorithm that has all of them."""
    for algorithm in (grpo, dcpo, vl_calibration, state_signal):
        if set(given) <= set(algorithm.Settings.model_fields):
            return algorithm.Settings(**given)
    raise KeyError(set(given) - set(grpo.Settings.model_fields))


@pytest.fixture
def job(tiny, tmp_path):
    """Return a function that makes a job of three questions, which writes to tmp_path / name."""

    def make(name, *, seed=1, reward=LENGTH, prompt="shared", checkpoints=None, before=(), **settings):
        questions = ["Is this a CT scan?", "What is the size of the lesion?", "Where?"]
        fields = {"prompt": prompt, "before": before, "seed": seed, "reward": reward, "checkpoints": checkpoints}
        fields |= {"settings": _settings(GRPO | settings), "out": tmp_path / name}
        return jobs.job(tmp_path, tiny.checkpoint, questions, **fields)

    return make


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module for workers to run; its argument is a file, to whose folder the workers may write."""

    def write(body):
        (tmp_path / "worked.py").write_text("import os, sys, time\nfrom pathlib import Path\n" + textwrap.dedent(body))
        return "worked"

    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    return write


# Rewards that differ within groups, so that there are gradients; one process may be killed in a step.
RECORDER = """
import json, os, signal
from pathlib import Path

from dualread.training.rewards.dcpo import CONTRACT

_OUT, _CALLS = Path(__file__).parent, []

def _record(name, values):
    with (_OUT / f"{name}-{os.environ.get('RANK')}").open("a") as file:
        file.write(json.dumps(values) + "\\n")

def reward(found, *, sample_id, **columns):
    _record("asked", sample_id)
    _CALLS.append(sample_id)
    if (_OUT / "kill").exists() and os.environ["RANK"] == "1" and len(_CALLS) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return [float(len(verdict.completion)) for verdict in found]

def calibration_reward(found, *, groups, gamma):
    _record("groups", groups)
    return [-float(len(verdict.completion)) for verdict in found]
"""


@pytest.fixture
def folder(tmp_path):
    """Where a reward plugin and further plugins are, and what processes tell."""
    (folder := tmp_path / "told").mkdir()
    (folder / "recorder.py").write_text(RECORDER)
    for family in (rewards, rollouts):
        family.__path__.append(str(folder))
    plugins.known.cache_clear()  # another test may have looked which there are
    yield folder
    for family in (rewards, rollouts):
        family.__path__.remove(str(folder))
    plugins.known.cache_clear()


@pytest.fixture
def trainer(module, folder):
    """Return a function that writes a module for workers that train with the plugins of `folder`."""
    paths = "".join(
        f"import dualread.training.{family}\ndualread.training.{family}.__path__.append({str(folder)!r})\n"
        for family in ("rewards", "rollouts")
    )
    ends = "\nfrom dualread.training import worker\nsys.exit(worker.main(sys.argv[1:]))\n"
    return lambda more="": module(paths + more + ends)


@pytest.fixture
def assignment(tmp_path):
    """An untrained checkpoint and the questions of three phantoms; steps of three prompts with two completions each."""
    builder.build("qwen3_vl", tmp_path / "checkpoint")
    phantom = specs.phantom(seed=1, images={"train": 3, "validation": 1, "test": 1}, questions_per_image=4)
    manifest = table_of(tmp_path, phantom, specs.manifest(split="train", roles="fit"))
    (tmp_path / "scratch").mkdir()
    settings = {"steps": 3, "prompts_per_step": 3, "completions_per_pass": 3, "gamma": 0.5, "save_every": 1}
    return Assignment(
        spec=specs.training("dcpo", "recorder", **settings),
        checkpoint=tmp_path / "checkpoint",
        facts=specs.facts() / "facts.json",
        manifest=manifest / "manifest.parquet",
        images=manifest,
        out=tmp_path / "out",
        scratch=tmp_path / "scratch",
        checkpoints=None,
    )
