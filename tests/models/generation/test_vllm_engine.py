"""What of the vLLM engine needs no vLLM; the rest is in tests/with_vllm (`make test-vllm`)."""

import sys

from dualread import plugins
from dualread.models.generation.vllm_engine import beginnings


def test_the_engine_is_a_plugin_with_an_environment_that_is_not_ours():
    assert "vllm_engine" in plugins.known("generation")
    assert plugins.declared("generation", "vllm_engine", "ENVIRONMENT") == "vllm"
    assert plugins.declared("generation", "transformers_engine", "ENVIRONMENT") is None
    assert "vllm" not in sys.modules  # although the plugin is imported, above


def test_every_beginning_of_the_choices_is_asked_about_once():
    """1, 12, 13 and 2: behind nothing come 1 and 2, behind 1 come 2 and 3, behind a whole choice nothing."""
    assert list(beginnings([[1], [1, 2], [1, 3], [2]], 128)) == [((), [1, 2]), ((1,), [2, 3])]


def test_the_integers_of_two_digits_and_an_end_have_eleven_beginnings_each_of_ten_ids():
    """00x to 99x, x = 10: the empty one, 0 to 9, and 00 to 99 before their end: 1 + 10 + 100."""
    choices = [[tens, ones, 10] for tens in range(10) for ones in range(10)]
    found = list(beginnings(choices, 128))
    assert len(found) == 1 + 10 + 100
    assert found[0] == ((), list(range(10)))
    assert found[1] == ((0,), list(range(10)))
    assert ((4, 2), [10]) in found


def test_many_ids_behind_one_beginning_are_asked_about_in_parts():
    assert list(beginnings([[i] for i in range(5)], 2)) == [((), [0, 1]), ((), [2, 3]), ((), [4])]
