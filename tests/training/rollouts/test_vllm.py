"""Rollouts by engines in processes of their own, which stand for vLLM here: weights as a file, and rows in parts."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from dualread.models.actor import SeededDecoding
from dualread.models.generation.data_parallel import DataParallelEngine
from dualread.training.rollouts import vllm

DECODING = SeededDecoding(temperature=1.0, top_p=1.0, n_samples=1, max_completion_tokens=1, seed=0)


@dataclass
class Parrot:
    """An engine that says where it is and what it was given."""

    weights: dict = field(default_factory=dict)
    names: int | None = None  # of the file with the weights

    def load_file(self, file: Path) -> None:
        self.weights, self.names = torch.load(file, weights_only=True), file.stat().st_nlink

    def sample(self, prompts, decoding, seeds):
        where = os.environ["CUDA_VISIBLE_DEVICES"], os.environ.get("RANK")
        weights = {name: (str(of.dtype), of.tolist()) for name, of in self.weights.items()}
        return [(prompt, seed, where, weights, self.names) for prompt, seed in zip(prompts, seeds, strict=True)]


@pytest.fixture
def apart(monkeypatch):
    monkeypatch.setenv("RANK", "3")  # of the process that trains; vLLM would look for others of its kind
    engines = DataParallelEngine(Parrot, (), ["6", "7"], None)
    rollouts = vllm.DistantRollouts(engines, "bfloat16")
    yield rollouts
    rollouts.close()


@pytest.mark.rest
def test_every_engine_gets_all_weights_and_a_part_of_the_rows_in_their_order(apart):
    tied = torch.tensor([[1.0, 2.0 + 2**-12]])  # the last digit is none in bfloat16
    weights = {"embedding": tied, "head": tied, "turned": torch.arange(6.0).reshape(2, 3).T}
    made = apart.roll_out(iter(weights.items()), list("abcde"), DECODING, [1, 2, 3, 4, 5])
    assert [(prompt, seed) for prompt, seed, *_ in made] == [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)]
    assert [where for _, _, where, *_ in made] == [("6", None)] * 3 + [("7", None)] * 2
    rounded = ("torch.bfloat16", [[1.0, 2.0]])
    turned = ("torch.bfloat16", [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]])
    assert all(given == {"embedding": rounded, "head": rounded, "turned": turned} for *_, given, _ in made)


@pytest.mark.rest
def test_new_weights_replace_the_old_ones_and_no_file_stays_open(apart):
    def of_step(value):
        return apart.roll_out([("w", torch.tensor([value]))], ["a"], DECODING, [1])[0][3]["w"][1]

    assert [of_step(value) for value in (1.0, 2.0)] == [[1.0], [2.0]]
    assert not [link for link in Path("/proc/self/fd").iterdir() if "weights" in os.path.realpath(link)]


@pytest.mark.rest
def test_weights_are_a_file_without_a_name_of_which_nothing_is_left_when_its_processes_are_killed(apart):
    [(*_, names)] = apart.roll_out([("w", torch.zeros(1000))], ["a"], DECODING, [1])
    assert names == 0


def test_without_gpus_of_its_own_there_is_one_engine_which_sleeps_between_steps(monkeypatch):
    done = []

    class Engine:
        def __init__(self, checkpoint, model, engine):
            done.append(("open", engine))

        def load(self, weights):
            done.append(("load", dict(weights)))

        def sample(self, prompts, decoding, seeds):
            done.append(("sample", prompts, seeds))
            return ["made"]

        def sleep(self):
            done.append(("sleep",))

        def close(self):
            done.append(("close",))

    monkeypatch.setattr(vllm.vllm_engine, "VllmEngine", Engine)
    rollouts = vllm.open_rollouts(Path("checkpoint"), {"dtype": "float32"}, {"sleep": True})
    assert rollouts.roll_out([("w", 1)], ["a"], DECODING, [5]) == ["made"]
    rollouts.close()
    assert done == [
        ("open", {"max_num_seqs": 256, "gpu_memory_utilization": 0.3, "sleep": True}),
        ("sleep",),  # the trainer's model is not there yet, and needs the memory
        ("load", {"w": 1}),
        ("sample", ["a"], [5]),
        ("sleep",),
        ("close",),
    ]
