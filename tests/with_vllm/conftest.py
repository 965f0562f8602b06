"""Fixtures: vLLM's CPU build in the environment that the workflow's own rule makes, and a phantom data set."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dualread.schema.answers import GenerateSpec, ReplaySpec
from dualread.schema.backbones import CopyCheckpointSpec
from dualread.schema.base import ConfiguredPlugin
from dualread.schema.replay import Agreement
from tests import specs
from tests.environments import python_of
from tests.hospital import table_of
from tests.specs import changed
from tests.tiny import MODEL, Tiny, build

ROOT = Path(__file__).parents[2]
OVERLAY = "workflow/studies/vllm_cpu.yaml"
TRANSFORMERS = ConfiguredPlugin(module="models.generation.transformers_engine", settings={"batch_size": 32})
VLLM = ConfiguredPlugin(module="models.generation.vllm_engine", settings={"max_num_seqs": 32})
GREEDY = specs.decoding(max_completion_tokens=16)
AGREEMENT = Agreement(max_mean_log_prob_difference=1e-4, max_argmax_mismatch_share=0.0, argmax_tolerance=1e-4)


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The Python of vLLM's environment; making it for the first time takes some minutes."""
    return python_of(OVERLAY)


@pytest.fixture(scope="session")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """128 questions about 16 images, which are larger than the backbones' input."""
    images = {"train": 1, "validation": 1, "test": 16}
    phantom = specs.phantom(seed=1, images=images, size=48, questions_per_image=8)
    return table_of(tmp_path_factory.mktemp("hospital"), phantom, specs.manifest())


@dataclass(frozen=True, kw_only=True)
class Lab:
    """Runs stages in separate processes, as rules do, for one actor and one manifest."""

    tiny: Tiny
    actor: Path
    manifest: Path
    vllm_python: Path

    def answers(self, engine: ConfiguredPlugin, *, seed: int = 0, **changes: Any) -> GenerateSpec:
        """A spec of the stage `generate`; `changes` are those of the shard."""
        asked = specs.shard(**{"decoding": GREEDY} | changes)
        return changed(specs.generate(asked), engine=engine, seed=seed)

    def states(self, **changes: Any) -> ReplaySpec:
        """A spec of the stage `replay`; `changes` are those of the shard."""
        asked = specs.shard(**{"decoding": GREEDY} | changes)
        spec = specs.replay(asked, batch_size=32)
        return changed(spec, replay=spec.replay.model_copy(update={"agreement": AGREEMENT}))

    def command(
        self, stage: str, wanted: Mapping[Path, Any], manifests: Mapping[Path, Path] | None = None, **inputs: Path
    ) -> list[str]:
        """The command of a job that makes {output: spec}; as in the rules, vLLM's engine runs in vLLM's environment.

        `manifests` holds the manifests of those outputs that do not use the lab's manifest.
        """
        own = {output: {"manifest": str(path)} for output, path in (manifests or {}).items()}
        entries = [{"spec": s.to_spec(), "output": str(o), "inputs": own.get(o, {})} for o, s in wanted.items()]
        given = (
            {}
            if stage == "copy_checkpoint"
            else {"actor": self.actor, "facts": specs.facts(), "manifest": self.manifest}
        )
        folders = {name: str(path) for name, path in {**given, **inputs}.items()}
        store = next(iter(wanted)).parent / "store"
        job = {"store": str(store), "inputs": folders, "entries": entries}
        is_vllm = stage == "generate" and next(iter(wanted.values())).engine == VLLM
        python = self.vllm_python if is_vllm else sys.executable
        return [str(python), "-m", "dualread.store.run", stage, json.dumps(job)]

    def run(
        self, stage: str, output: Path, spec: Any, shadows: Path | None = None, **inputs: Path
    ) -> subprocess.CompletedProcess[str]:
        """Run a stage for one entry; modules in the folder `shadows` take precedence over all others."""
        path = ":".join(map(str, filter(None, (shadows, ROOT / "lib"))))
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        command = self.command(stage, {output: spec}, **inputs)
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def make(self, stage: str, output: Path, spec: Any, **inputs: Path) -> Path:
        """Run a stage, check that it succeeds, and return its artifact."""
        done = self.run(stage, output, spec, **inputs)
        assert done.returncode == 0, done.stderr
        return output


def _lab(family: str, folder: Path, manifest: Path, vllm_python: Path) -> Lab:
    # vLLM's attention on CPUs needs heads of width 32 or more.
    tiny = build(family, folder / "built" / "checkpoint", hidden_size=64)
    lab = Lab(tiny=tiny, actor=folder / "actor", manifest=manifest, vllm_python=vllm_python)
    spec = CopyCheckpointSpec(model=MODEL)
    lab.make("copy_checkpoint", lab.actor, spec, source=tiny.checkpoint)
    return lab


@pytest.fixture(scope="session")
def qwen(tmp_path_factory: pytest.TempPathFactory, manifest: Path, vllm_python: Path) -> Lab:
    return _lab("qwen3_vl", tmp_path_factory.mktemp("qwen3_vl"), manifest, vllm_python)


@pytest.fixture(scope="session")
def gemma(tmp_path_factory: pytest.TempPathFactory, manifest: Path, vllm_python: Path) -> Lab:
    return _lab("gemma3", tmp_path_factory.mktemp("gemma3"), manifest, vllm_python)
