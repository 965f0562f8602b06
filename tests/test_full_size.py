"""The rehearsal at full size as far as any machine can run it; `make test-full-size` runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
NARROW = """
import sys
from pathlib import Path
import sharded_step
sharded_step.step("medgemma-27b", 1, "full", Path(sys.argv[1]), narrower=16)
"""
LOADED = """
import json
import sys
from pathlib import Path
import _real
from _rehearsal import ADAPTED, CPU, GPU, TRAINED, Rehearsal
from _training import spec_of
print(json.dumps({name: _real.size_of(family, None, None) for name, family in _real.BACKBONES.items()}))
for scale in (CPU, GPU):
    for backbone in scale.layers:
        one = Rehearsal(folder=Path(sys.argv[1]), scale=scale, backbone=backbone, dtype="bfloat16")
        for stage in ("generate", "replay", *(f"train_actor ({actor})" for actor in (*TRAINED, ADAPTED))):
            print(scale.overlay, backbone, stage, one.least(stage))
        for actor in (*TRAINED, ADAPTED):
            assert spec_of(one, actor).settings["processes"] == 1
"""

ON_VLLM = """
import argparse
import sys
from pathlib import Path
import full_size
from _parts import every_prompt, parts_of
from _rehearsal import GPU, Rehearsal
from _training import spec_of
from dualread.models import prompts
assert [name for name, _ in every_prompt()] == list(prompts.names())
options = argparse.Namespace(
    backbones=["qwen3-vl-2b"], dtypes=["bfloat16"], only=["generate", "replay"], vllm_python=Path("python")
)
print([kind for *_, kind in full_size._processes(options)])
Rehearsal.answering = Path(sys.argv[1], "actor")  # nothing is written
for on_vllm in (False, True):
    one = Rehearsal(folder=Path(sys.argv[1]), scale=GPU, backbone="qwen3-vl-2b", dtype="bfloat16", on_vllm=on_vllm)
    one.facts.mkdir(parents=True, exist_ok=True)
    (one.facts / "facts.json").touch()
    print(one.engine.module, *(part.name for kind in ("probe", "generate") for part in parts_of(kind, one)), sep="|")
    print(*(part.name for part in parts_of("replay", one)), sep="|")
    rollouts = spec_of(one, "rlvr").rollouts
    print(rollouts and rollouts.module)
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    env = {**os.environ, "PYTHONPATH": str(BENCHMARKS), "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_sharded_step_of_a_larger_backbone_is_taken(tmp_path):
    done = run("-c", NARROW, str(tmp_path))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[-2:]
    for rank, line in enumerate((first, second)):
        assert line.startswith("medgemma-27b, 1 layer(s), 0.00e9 weights, shard: full, process " + str(rank))


def test_sizes_are_those_of_the_papers_study_and_memory_is_known_of_every_part_at_both_scales(tmp_path):
    done = run("-c", LOADED, str(tmp_path))
    assert done.returncode == 0, done.stderr
    sizes, *lines = done.stdout.splitlines()
    files = ROOT / "workflow/studies/paper.yaml", BENCHMARKS / "full_size_families.yaml"
    backbones = {name: of for file in files for name, of in yaml.safe_load(file.read_text())["backbones"].items()}
    for name, size in json.loads(sizes).items():
        assert size == pytest.approx(backbones[name]["size"], rel=1e-3)  # parameters are rounded there
    assert len(lines) == 2 * 4 * 6
    assert all(float(line.split()[-1]) > 5e8 for line in lines)


def test_vllm_generates_after_a_process_that_finds_the_facts_and_replays_are_of_its_answers(tmp_path):
    done = run("-c", ON_VLLM, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['probe', 'generate', 'replay']",
        "models.generation.transformers_engine|greedy|samples|stated_integer|p_true",
        "replay of greedy|replay of samples",
        "None",
        "models.generation.vllm_engine|greedy|samples|stated_integer|p_true|greedy, states kept",
        "replay of greedy|replay of samples|replay of greedy, states kept",
        "training.rollouts.vllm",
    ]
