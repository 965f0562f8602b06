"""workflow/studies/larger.yaml: larger backbones in the paper's study, each on as many GPUs as its training says."""

from dualread.study.files import load
from tests.study.embedded import ROOT

FILES = [ROOT / "workflow/studies" / name for name in ("paper.yaml", "larger.yaml")]


def test_the_papers_actors_and_methods_but_vl_calibration():
    config, paper = load(FILES, ROOT), load(FILES[:1], ROOT)
    assert config.actors.keys() == paper.actors.keys() - {"vl_calibration"}
    assert config.methods.keys() == paper.methods.keys() - {"vl_calibration"}


def test_sizes_are_those_of_the_architecture():
    """Counted by hand: parameters of the language model and of the vision tower, without biases and norms."""
    for name, head in (("qwen3-vl-8b", 2), ("medgemma-27b", 1)):  # Qwen3-VL-8B has a head of its own
        size = load(FILES, ROOT).as_mapping()["backbones"][name]["size"]
        width = size["hidden_size"]
        layer = 2 * width * (size["attention_width"] + size["key_value_width"]) + 3 * width * size["feed_forward"]
        seen = 4 * size["vision_width"] ** 2 + 2 * size["vision_width"] * size["vision_feed_forward"]
        counted = size["layers"] * layer + head * width * size["vocabulary"] + size["vision_layers"] * seen
        assert counted <= size["parameters"] <= 1.02 * counted
