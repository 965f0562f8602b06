import types

import pytest
import torch
from transformers import AutoModelForImageTextToText

from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.probe import probe
from tests import families, more_families, tiny
from tests.architectures import one_architecture as pytest_generate_tests  # noqa: F401


@pytest.fixture(scope="session", params=list(families.FAMILIES))
def family(request, tmp_path_factory):
    """A checkpoint of an architecture that the library does not know: probed, opened, and as transformers has it."""
    torch.set_num_threads(1)
    modules = {tiny: tiny.FAMILIES, families: families.FAMILIES, more_families: more_families.MORE}
    module = next(module for module, names in modules.items() if request.param in names)
    module.build(request.param, folder := tmp_path_factory.mktemp(request.param) / "checkpoint")
    probed = probe(open_checkpoint(folder, families.SETTINGS), request.param)
    opened = open_checkpoint(folder, families.SETTINGS, probed.facts)
    plain = AutoModelForImageTextToText.from_pretrained(folder).eval()
    return types.SimpleNamespace(name=request.param, folder=folder, probed=probed, opened=opened, plain=plain)
