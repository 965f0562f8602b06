"""workflow/studies/one_gpu_lora.yaml: every stage with a model fits into one GPU with 24 GB."""

import yaml

from dualread.commands.plan.memory import needs
from dualread.commands.plan.models import model_of
from dualread.commands.plan.report import COSTS
from dualread.study.config import resolve
from dualread.study.files import laid_over
from tests.study.embedded import EMBEDDED, ROOT, merged

FILE = yaml.safe_load((ROOT / "workflow/studies/one_gpu_lora.yaml").read_text())
COSTS_OF_GPU = [COSTS, ROOT / "workflow/costs/rtx_4090.yaml"]
BACKBONES = ("qwen3-vl-2b", "medgemma-1.5-4b")


def test_every_stage_fits_into_24_gb():
    costs = laid_over(*(yaml.safe_load(file.read_text()) for file in COSTS_OF_GPU))
    config = resolve(merged(EMBEDDED, FILE), root=ROOT).as_mapping()
    room = costs["gpu"]["memory"] * costs["gpu"]["memory_share"]
    assert room < 24e9
    found = [need for name in BACKBONES for need in needs(config, name, model_of(config, name, costs))]
    assert len(found) == 2 * (4 + 2)  # four trainings, generation and replay of each
    assert {(need.stage, need.backbone): need.total for need in found if need.total > room} == {}


def test_it_has_every_method_and_trains_adapters_alone():
    config = resolve(merged(EMBEDDED, FILE), root=ROOT)
    assert config.methods.keys() == resolve(EMBEDDED).methods.keys()
    trained = [actor for actor in config.actors.values() if actor.training]
    assert len(trained) == 4
    assert all("lora" in (actor.settings or {}) for actor in trained)


def test_the_papers_study_trains_all_weights():
    paper = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())
    config = resolve(merged(EMBEDDED, paper), root=ROOT)
    assert not any("lora" in (actor.settings or {}) for actor in config.actors.values())
