"""How much is read at once; what is read is compared with transformers alone in test_families.py."""

import types

import pytest
import torch

from dualread.models.prefixes import pass_tokens


@pytest.mark.parametrize(("device", "expected"), [("cpu", 1536), ("cuda", 8192)])
def test_a_pass_is_larger_on_a_gpu(device, expected):
    assert pass_tokens(types.SimpleNamespace(device=torch.device(device))) == expected
