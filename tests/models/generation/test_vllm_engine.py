"""The parts of the vLLM engine that run without vLLM; tests/with_vllm has the others (`make test-vllm`)."""

import sys

import pytest

from dualread import plugins
from dualread.errors import ConfigError
from dualread.models.generation.vllm_engine import next_ids, open_engine


def test_the_engine_is_a_plugin_with_a_separate_environment():
    assert "vllm_engine" in plugins.known("generation")
    assert plugins.declared("generation", "vllm_engine", "ENVIRONMENT") == "vllm"
    assert plugins.declared("generation", "transformers_engine", "ENVIRONMENT") is None
    assert "vllm" not in sys.modules  # although its plugin is imported above


def test_quantized_weights_are_refused_before_anything_is_opened(tmp_path):
    settings = {"quantization": {"module": "models.quantized", "bits": 4}}
    with pytest.raises(ConfigError, match=r"quantization: vLLM has other kernels .* transformers_engine"):
        open_engine(tmp_path, settings, {})


def test_every_proper_prefix_is_yielded_once():
    """Continuations 1, 12, 13 and 2: the empty prefix is followed by 1 and 2, the prefix 1 by 2 and 3."""
    assert list(next_ids([[1], [1, 2], [1, 3], [2]], 128)) == [((), [1, 2]), ((1,), [2, 3])]


def test_many_next_ids_of_one_prefix_are_split_into_parts():
    assert list(next_ids([[i] for i in range(5)], 2)) == [((), [0, 1]), ((), [2, 3]), ((), [4])]
