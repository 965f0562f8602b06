"""workflow/studies/one_gpu_lora.yaml: adapters of the paper's two backbones."""

import yaml

from dualread.study.config import resolve
from tests.study.embedded import EMBEDDED, ROOT, merged

FILE = yaml.safe_load((ROOT / "workflow/studies/one_gpu_lora.yaml").read_text())


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
