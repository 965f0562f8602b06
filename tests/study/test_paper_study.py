"""workflow/studies/paper.yaml states all values of the paper itself, and uses the data sets as the paper does."""

import pytest
import yaml

from dualread.study.config import resolve
from dualread.study.files import load
from dualread.study.shards import StudyShards
from dualread.study.sizes import Sizes
from tests.reporting.tables.test_hparams import PAPER, rows_of
from tests.study.embedded import EMBEDDED, ROOT, merged

FILE = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())

# The paper's inventory of data sets.
QUESTIONS = {
    ("slake", "train"): 4919,
    ("slake", "validation"): 1053,
    ("slake", "test"): 1061,
    ("vqa_rad", "test"): 600,
    ("path_vqa", "test"): 1000,
    ("pmc_vqa", "test"): 1000,
    ("omnimedvqa", "test"): 920,
    ("rexvqa", "test"): 1000,
    ("vqa_med_2019", "test"): 64,
}
WITH_DONORS = {"slake", "vqa_rad", "path_vqa", "vqa_med_2019"}
WITH_OPTIONS = {"pmc_vqa", "omnimedvqa", "rexvqa"}

# Other values than config.yaml has for every row of the table of hyperparameters.
_TRAINING = {
    "group_size": 2, "temperature": 0.5, "top_p": 0.5, "clip_low": 0.1, "clip_high": 0.1, "kl_coefficient": 0.5,
    "warmup_fraction": 0.5, "betas": [0.1, 0.1], "weight_decay": 0.5, "clip_norm": 0.5, "max_completion_tokens": 7,
}  # fmt: skip
OTHERWISE = {
    "seeds": [1],
    "actors": {name: {"settings": _TRAINING} for name in ("rlvr", "rlcr", "dcpo", "vl_calibration")},
    "generation": {"decoding": {"temperature": 0.5, "max_completion_tokens": 7}},
    "replay": {"kappa": 0.5},
    "methods": {
        "psr": {"settings": {"hidden": [7], "learning_rate": 0.5, "weight_decay": 0.5, "batch_size": 7, "max_epochs": 7,
                             "patience": 7}},
        "p_state": {"settings": {"steps": 7, "learning_rate": 0.5, "l2": 0.5}},
        "per": {"settings": {"steps": 7, "learning_rate": 0.5, "l2": 0.5}},
    },
    "metrics": {"bootstrap": {"replicates": 77}},
}  # fmt: skip


@pytest.fixture(scope="module")
def study():
    return resolve(merged(EMBEDDED, FILE), root=ROOT)


@pytest.fixture(scope="module")
def written(study):
    """The study as plain mappings, without what it leaves out."""
    return study.as_mapping()


def test_it_states_every_hyperparameter_whatever_config_yaml_says():
    assert rows_of(OTHERWISE)[1] != rows_of({})[1]
    assert {row: rows_of(merged(OTHERWISE, FILE))[1][row] for row in PAPER} == {
        row: rows_of(FILE)[1][row] for row in PAPER
    }


def test_it_asks_as_many_questions_as_the_paper(written):
    sizes = Sizes(written, ROOT / "nowhere", root=ROOT)
    splits = {(name, split) for name, dataset in written["datasets"].items() for split in dataset["splits"]}
    assert {split: sizes.of(*split).questions for split in splits} == QUESTIONS
    rules = {name: dataset.get("select") for name, dataset in written["datasets"].items()}
    assert rules["vqa_rad"] == {"questions": {"open": 236, "closed": 364}}
    assert rules["path_vqa"] == {"questions": {"open": 500, "closed": 500}, "max_per_image": 2}
    assert all(rules[name]["max_per_image"] == 1 for name in WITH_OPTIONS)
    assert rules["vqa_med_2019"] == {"answer_types": ["closed"]}


def test_readers_are_fitted_on_slake_only(written):
    roles = {name: dataset["roles"] for name, dataset in written["datasets"].items()}
    assert roles.pop("slake") == {
        "train": {"fit": 0.7, "stop": 0.1, "calibration": 0.2},
        "validation": "validation",
        "test": "test",
    }
    assert all(role == {"test": "ood"} for role in roles.values())
    with_control = resolve(
        merged(merged(EMBEDDED, FILE), {"conditions": {"black": {"image": "black", "control": True}}})
    )
    fitted_on = [shard for shard in StudyShards(with_control).shards("rlvr") if shard[1] == "train"]
    assert fitted_on == [("slake", "train", "original")]


def test_donors_and_shuffled_images_are_shown_where_the_paper_shows_them(study):
    shards = StudyShards(study)
    shown = {(condition, dataset) for dataset, split, condition in shards.shards("rlvr") if split == "test"}
    assert {dataset for condition, dataset in shown if condition == "original"} == set(study.datasets)
    for condition in ("donor", "donor_fixed_prefix"):
        assert {dataset for name, dataset in shown if name == condition} == WITH_DONORS
    assert {dataset for name, dataset in shown if name == "shuffled_image"} == WITH_OPTIONS
    for dataset in WITH_DONORS - {"slake"}:  # they record no modality
        assert study.datasets[dataset].pairing.match_on == []


def test_every_source_is_a_commit_or_a_folder(written):
    for entry in (*written["datasets"].values(), *written["backbones"].values()):
        assert "revision" in entry["source"] or set(entry["source"]) == {"folder"}


LARGER = [ROOT / "workflow/studies" / name for name in ("paper.yaml", "larger.yaml")]


def test_sizes_of_larger_backbones_are_those_of_the_architecture():
    """Counted by hand: parameters of the language model and of the vision tower, without biases and norms."""
    for name, head in (("qwen3-vl-8b", 2), ("medgemma-27b", 1)):  # Qwen3-VL-8B has a head of its own
        size = load(LARGER, ROOT).as_mapping()["backbones"][name]["size"]
        width = size["hidden_size"]
        layer = 2 * width * (size["attention_width"] + size["key_value_width"]) + 3 * width * size["feed_forward"]
        seen = 4 * size["vision_width"] ** 2 + 2 * size["vision_width"] * size["vision_feed_forward"]
        counted = size["layers"] * layer + head * width * size["vocabulary"] + size["vision_layers"] * seen
        assert counted <= size["parameters"] <= 1.02 * counted
