"""The size of a backbone of the paper, for tests of studies that have one."""

import yaml

from tests.study.embedded import ROOT

BACKBONES = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())["backbones"]
SIZE = BACKBONES["qwen3-vl-2b"]["size"]
