"""How much is read at once; what is read is compared with transformers alone in test_families.py."""

import sys
import types

import pytest
import torch

from dualread.models.backbones.parts import keeping
from dualread.models.prefixes import pass_tokens
from tests.architectures import both


@pytest.mark.parametrize(("device", "expected"), [("cpu", 1536), ("cuda", 8192)])
def test_a_pass_is_larger_on_a_gpu(device, expected):
    assert pass_tokens(types.SimpleNamespace(device=torch.device(device))) == expected


@both
@pytest.mark.parametrize("version", ["5.19.0", "5.22.1", "5.23.0", "6.0.0.dev0"])
def test_the_states_of_wanted_layers_do_not_depend_on_how_a_version_counts_them(tiny, monkeypatch, version):
    """Before 5.23, a list of layers is counted from the first layer, not from the embeddings."""
    monkeypatch.setattr(sys.modules["transformers"], "__version__", version)  # it replaces itself
    asked = keeping([1])
    assert asked == {"output_hidden_states": [1] if version >= "5.23" else True}
    ids, model = torch.arange(5)[None], tiny.open().model.model
    everything = model(input_ids=ids, output_hidden_states=True, use_cache=False).hidden_states
    assert torch.equal(model(input_ids=ids, **asked, use_cache=False).hidden_states[1], everything[1])


def test_without_wanted_layers_nothing_is_kept():
    assert keeping([]) == {}
