"""Predicted against measured memory and time of small models, and the constants that the formulas share with the code.

`benchmarks/memory.py` measures in processes of its own; this is a small part of it.
"""

import importlib
import json
import runpy
import sys

import pytest

from dualread.commands.plan import peaks
from dualread.commands.plan.models import encoding, reading
from tests.commands.plan.paper import BACKBONES
from tests.study.embedded import ROOT

FACTOR = 1.5  # between prediction and measurement


def test_passes_are_as_large_as_those_of_the_engine_and_the_replay():
    prefixes, replayed, head = (
        importlib.import_module(name)
        for name in (
            "dualread.models.prefixes",
            "dualread.models.replay.replayed",
            "trl.kernels.chunked_logprob",
        )
    )
    assert prefixes.PASS_TOKENS == peaks.PASS_TOKENS
    assert replayed.CHUNK_TOKENS == peaks.LOGIT_CHUNK
    assert head.TOKEN_CHUNK_SIZE == peaks.HEAD_TOKENS


@pytest.mark.parametrize("name", ["qwen3-vl-2b", "medgemma-1.5-4b"])
def test_the_sizes_of_the_papers_backbones_fit_their_parameters(name):
    size = BACKBONES[name]["size"]
    # two operations per weight; the embeddings and the vision tower's projections are not part of any layer
    language = reading(size, 1, 0) / 2 + size["vocabulary"] * size["hidden_size"]
    width = size["vision_width"]
    vision = size["vision_layers"] * (4 * width**2 + 2 * width * size["vision_feed_forward"])
    assert (language + vision) / size["parameters"] == pytest.approx(0.97, abs=0.03)


def test_a_longer_row_takes_more_operations_than_its_length():
    size = BACKBONES["qwen3-vl-2b"]["size"]
    assert reading(size, 2000, 2000) > 2 * reading(size, 1000, 1000)
    assert encoding(size, 1_000_000) > 2 * encoding(size, 500_000)


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Return the function that measures cases with the benchmark; each line has what was predicted as well."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")

    def run(*options):
        out = tmp_path / "cases.json"
        monkeypatch.setattr(sys, "argv", ["memory.py", "--json", str(out), *options])
        runpy.run_path(str(ROOT / "benchmarks/memory.py"), run_name="__main__")
        return [json.loads(line) for line in out.read_text().splitlines()]

    return run


# Large enough that allocators, and what Python itself needs, do not matter.
@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        "--families gemma3 --dtypes bfloat16 --sizes 30M --stages generate integers replay --rows 8 --side 192",
        "--families qwen3_vl --dtypes float32 --sizes 30M --stages samples replay --rows 16 --side 128 --made 32",
        "--families qwen3_vl --dtypes bfloat16 --sizes 10M --stages train --rows 4 --side 128 --made 32",
    ],
)
def test_predicted_and_measured_memory(measured, options):
    for case in measured(*options.split()):
        told = f"{case['stage']} of {case['family']}: {case['bytes'] / 1e6:.0f} MB, predicted {case['parts']}"
        assert case["bytes"] > 1e8, told
        assert 1 / FACTOR < case["bytes"] / case["predicted"] < FACTOR, told


@pytest.mark.long
def test_predicted_and_measured_growth_of_time(measured):
    """Images of twice the height and width take longer in the predicted proportion.

    16 rows, because what a pass of few and short rows takes is mostly Python.
    """
    options = ["--families", "qwen3_vl", "--dtypes", "float32", "--sizes", "10M", "--stages", "replay", "--made", "32"]
    small, large = measured(*options, "--rows", "16", "--side", "128", "256")
    told = [{name: case[name] for name in ("side", "seconds", "operations")} for case in (small, large)]
    ratio = large["seconds"] / small["seconds"] / (large["operations"] / small["operations"])
    assert 1 / FACTOR < ratio < FACTOR, told
