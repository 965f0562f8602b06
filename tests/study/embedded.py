"""The embedded study as a mapping, and the problems that a changed study is refused for."""

from pathlib import Path

import pytest
import yaml

from dualread.errors import ConfigError
from dualread.study.config import resolve

ROOT = Path(__file__).resolve().parents[2]

EMBEDDED = yaml.safe_load((ROOT / "config.yaml").read_text())
# Both backbones have the three seeds of the study, as in workflow/studies/embedded_full.yaml.
del EMBEDDED["backbones"]["medgemma-tiny"]["seeds"]
# Tests count by hand what follows from these sizes. Those in config.yaml may change.
EMBEDDED["phantoms"]["slake"] |= {"images": {"train": 100, "validation": 24, "test": 48}, "questions_per_image": 8}
for _backbone in EMBEDDED["backbones"].values():
    _backbone["source"]["pretrain"]["training"]["steps"] = 300
for _actor in EMBEDDED["actors"].values():
    if "settings" in _actor:
        _actor["settings"]["steps"] = 8


def merged(base, changes):
    """What Snakemake does with --configfile: mappings key by key, everything else replaced."""
    result = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def problems(changes):
    with pytest.raises(ConfigError) as error:
        resolve(merged(EMBEDDED, changes), source="config.yaml")
    return str(error.value)
