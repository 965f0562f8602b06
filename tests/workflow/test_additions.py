"""What a newcomer adds without touching a file of ours: only jobs of what is new run, and nothing is trained again."""

import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from safetensors.numpy import load_file

from dualread.readers.artifact import load_reader
from tests.workflow.checkout import ROOT, Checkout, Run

pytestmark = pytest.mark.rest

MICRO = "workflow/studies/micro.yaml"
# These read the metrics of all methods.
SHARED = {"collect_metrics", "build_table", "preview_tables", "export_records", "export_answers", "measure_difficulty"}
GREEDY = {"temperature": 0.0, "top_p": 1.0, "n_samples": 1, "max_completion_tokens": 8}

# The files that docs/your-methods.md adds, by their paths below the library.
PAGE = (ROOT / "docs/your-methods.md").read_text()
FILES = dict(re.findall(r"`([\w/]+\.py)`\n\n```python\n(.*?)```", PAGE, re.DOTALL))
PROMPT = "State how sure you are as low or high. <answer>...</answer><confidence>...</confidence>\n{QUESTION}"


@pytest.fixture
def checkout(micro, tmp_path) -> Checkout:
    shutil.copytree(micro.folder, tmp_path / "checkout", symlinks=True)
    return Checkout(folder=tmp_path / "checkout")


def write(checkout: Checkout, *names: str) -> None:
    for name in names:
        (checkout.folder / "lib/dualread" / name).write_text(FILES[name])


def run_with(checkout: Checkout, added: dict) -> Run:
    """Run the micro study with what is added; nothing of what was there may be computed again."""
    (checkout.folder / "mine.yaml").write_text(yaml.safe_dump(added))
    run = checkout.snakemake(study=f"{MICRO} mine.yaml")
    assert run.returncode == 0, run.text
    return run


def own(run: Run) -> set[tuple[str, str]]:
    """What was computed, without what reads the metrics of all methods: (stage, path below the run of the actor)."""
    return {(stage, path) for stage, path in run.entries("computed") if stage not in SHARED}


@pytest.mark.long
def test_an_image_change_with_a_method_on_it(checkout):
    write(checkout, "models/images/mirrored.py", "readers/stays.py")
    view = {"image": "mirrored", "decoding": GREEDY}
    method = {
        "label": "Stays",
        "group": "Mine",
        "actor": "rlvr",
        "reader": "stays",
        "views": ["mirrored"],
        "cost": "$2t$",
    }
    run = run_with(
        checkout,
        {
            "only": {"methods": ["rlvr", "dualread", "stays"]},
            "views": {"mirrored": view},
            "methods": {"stays": method},
        },
    )
    of_run = "qwen3-vl-tiny/rlvr/17"
    shards = [f"slake/{split}/{condition}" for split, condition in (("validation", "original"), ("test", "original"))]
    shards.append("slake/test/donor")
    assert own(run) == {
        *(("generate", f"views/{of_run}/{shard}/mirrored") for shard in shards),
        ("fit_readers", f"readers/{of_run}/stays"),
        ("score_answers", f"predictions/{of_run}/stays"),
        ("compute_metrics", f"metrics/{of_run}/stays"),
        ("measure_costs", f"costs/{of_run}/stays"),
    }
    assert "Stays" in (checkout.folder / "tables/main.tex").read_text()
    costs = pl.read_parquet(checkout.folder / f"results/micro/costs/{of_run}/stays/costs.parquet")
    assert (costs["completions"][0], costs["prompt_passes"][0]) == (2.0, 2.0)


@pytest.mark.long
def test_a_prompt_with_a_format_of_its_own_for_the_same_checkpoint(checkout):
    write(checkout, "grading/contracts/worded.py")
    (checkout.folder / "lib/dualread/models/prompts/worded.txt").write_text(PROMPT)
    actor = {"label": "In words", "same_as": "rlvr", "prompt": "worded"}
    method = {"label": "In words", "group": "Mine", "actor": "worded", "reader": "verbalized", "cost": "$t$"}
    run = run_with(
        checkout,
        {
            "only": {"actors": ["rlvr", "worded"], "methods": ["rlvr", "dualread", "worded"]},
            "actors": {"worded": actor},
            "methods": {"worded": method},
        },
    )
    computed = own(run)
    assert {path.split("/")[2] for _, path in computed} == {"worded"}
    assert {stage for stage, _ in computed} == {
        *("generate", "grade", "fit_readers", "score_answers", "compute_metrics", "measure_costs")
    }
    answers = checkout.folder / "results/micro/graded/qwen3-vl-tiny/worded/17/slake/test/original/graded.parquet"
    stated = pl.read_parquet(answers)["verbalized_confidence"].drop_nulls()
    assert set(stated) <= {0.2, 0.8}


def test_a_condition_gets_metrics_and_a_column_of_nothing_else_changes(checkout):
    before = pl.read_parquet(checkout.folder / "results/micro/metrics_of/rlvr/metrics.parquet")
    run = run_with(
        checkout,
        {
            "conditions": {
                "black": {"image": "black", "control": True, "splits": ["test"]},
                "noisy": {
                    "image": {"name": "noise", "settings": {"strength": 0.5}},
                    "control": True,
                    "splits": ["test"],
                },
                "blind": {"image": "none", "control": True, "splits": ["test"]},
            }
        },
    )
    new = {f"slake/test/{name}" for name in ("black", "noisy", "blind")}
    answered = {(stage, path) for stage, path in own(run) if stage in ("generate", "grade", "replay")}
    assert {path.split("/", 4)[4] for _, path in answered} == new
    assert {stage for stage, _ in own(run)} == {
        *("generate", "grade", "replay", "score_answers", "compute_metrics"),
    }
    after = pl.read_parquet(checkout.folder / "results/micro/metrics_of/rlvr/metrics.parquet")
    is_new = pl.col("subset").str.starts_with("condition:")
    assert after.filter(~is_new).equals(before)
    found = after.filter(is_new, method="rlvr", split="test", metric="accuracy")
    assert found["subset"].to_list() == [
        f"condition:{name}" for name in ("black", "blind", "donor", "noisy", "original")
    ]
    assert found["low"].null_count() == 0
    # No image, no states of image tokens: the stated confidence is there, and that of the states says why it is not.
    blind = after.filter(subset="condition:blind", split="test", metric="mean_confidence")
    reasons = dict(blind.select("method", "reason").iter_rows())
    assert reasons["rlvr"] is None
    assert reasons["dualread"] == "this method has no confidence under condition blind"
    assert Path(checkout.folder / "tables/main.tex").is_file()


@pytest.mark.long
def test_methods_on_methods_of_other_splits_and_with_views_of_their_own(checkout):
    own_methods = {
        "isotonic_dualread": {"reader": "isotonic", "parents": {"of": "dualread"}},  # fitted on training answers
        "isotonic_sc4": {"reader": "isotonic", "parents": {"of": "sc4"}},  # reads samples
        "hac": {
            "reader": "hac",
            "parents": {"confidence": "dualread", "hallucination": "semantic_uncertainty"},
            "settings": {"form": "regression"},
        },
    }
    named = {"group": "Maps", "actor": "rlvr"}
    added = {name: {"label": name, **named, **entry} for name, entry in own_methods.items()}
    run = run_with(checkout, {"only": {"methods": ["rlvr", "dualread", *added]}, "methods": added})
    of_run = "qwen3-vl-tiny/rlvr/17"
    computed = own(run)
    assert not {stage for stage, _ in computed} & {"train_actor", "replay", "grade"}
    fitted = {path.rpartition("/")[2] for stage, path in computed if stage == "fit_readers"}
    assert fitted == {*added, "sc4", "semantic_uncertainty"}
    predictions = checkout.folder / "results/micro/predictions" / of_run
    frames = {name: pl.read_parquet(predictions / name / "predictions.parquet") for name in (*added, "dualread")}
    assert len(frames["isotonic_dualread"]) == len(frames["dualread"]) > 0
    both = frames["dualread"].join(frames["isotonic_dualread"], on=["sample_id", "dataset", "split", "condition"])
    assert both.sort("score")["confidence_right"].is_sorted()  # monotone
    costs = {
        name: pl.read_parquet(checkout.folder / "results/micro/costs" / of_run / name / "costs.parquet")
        for name in ("isotonic_sc4", "hac", "sc4")
    }
    assert costs["isotonic_sc4"]["completions"][0] == costs["sc4"]["completions"][0] == 5.0  # the answer and 4 samples
    assert (costs["hac"]["completions"][0], costs["hac"]["replay_passes"][0]) == (9.0, 1.0)


def test_the_battery_of_the_field(checkout):
    """The table and the figure, with a hint, of a study that has the conditions of workflow/studies/field.yaml."""
    field = yaml.safe_load((ROOT / "workflow/studies/field.yaml").read_text())
    chosen = ("no_image", "black", "misled", "blur_1", "blur_3", "hidden_2")
    run = run_with(
        checkout,
        {
            "conditions": {name: field["conditions"][name] for name in chosen},
            "tables": {"robustness": {"methods": ["rlvr", "psr", "dualread"]}},
            "figures": {"robustness": {"methods": ["rlvr", "dualread"]}},
        },
    )
    assert not {stage for stage, _ in own(run)} & {"train_actor", "fit_readers"}
    printed = (checkout.folder / "tables/robustness.tex").read_text()
    assert "no image" in printed
    cells = pl.read_csv(checkout.folder / "tables/robustness.csv", comment_prefix="#")
    assert set(cells["subset"]) == {f"condition:{name}" for name in (*chosen, "donor", "original")}
    drawn = pl.read_csv(checkout.folder / "figures/robustness.csv", comment_prefix="#")
    points = drawn.filter(method="rlvr", metric="accuracy", image="blur")
    assert points["strength"].to_list() == [0.25, 1.0]
    assert points["mean"].null_count() == 0
    asked = pl.read_parquet(
        checkout.folder / "results/micro/generations/qwen3-vl-tiny/rlvr/17/slake/test/misled/generations.parquet"
    )
    plain = pl.read_parquet(
        checkout.folder / "results/micro/generations/qwen3-vl-tiny/rlvr/17/slake/test/original/generations.parquet"
    )
    assert (asked.sort("sample_id")["n_prompt_tokens"] > plain.sort("sample_id")["n_prompt_tokens"]).all()


def test_a_reader_of_the_base_and_of_another_seed_judges_the_answers_of_an_actor(checkout):
    settings = {"learning_rate": 1e-3, "weight_decay": 0.0, "batch_size": 32, "max_epochs": 3, "patience": 2}
    psr = {"group": "Mine", "reader": "psr", "settings": {**settings, "hidden": [8]}}
    methods = {
        "psr_base": {**psr, "label": "Base's", "actor": "base"},
        "psr_elsewhere": {**psr, "label": "Elsewhere", "actor": "rlvr", "transfer": {"method": "psr_base"}},
    }
    chosen = ["rlvr", "dualread", *methods]
    selected = {"only": {"actors": ["base", "rlvr"], "methods": chosen}, "methods": methods}
    run = run_with(checkout, {**selected, "tables": {"transfer": {"methods": ["psr", "psr_elsewhere"]}}})
    of_base = {("fit_readers", "psr_base"), ("score_answers", "psr_base"), ("score_answers", "psr_elsewhere")}
    assert {
        (stage, path.rpartition("/")[2]) for stage, path in own(run) if stage in ("fit_readers", "score_answers")
    } == of_base
    results = checkout.folder / "results/micro"
    reader = load_reader(results / "readers/qwen3-vl-tiny/base/0/psr_base/reader.safetensors")
    states = results / "features/qwen3-vl-tiny/rlvr/17/slake/test/original"
    h_pre = load_file(states / "features.safetensors")["h_pre"].astype(np.float64)
    weights = reader.weights.tensors
    layer = (h_pre - weights["mean"]) / weights["scale"]
    for k in (0, 1):  # one hidden layer, and the logit
        layer = layer @ weights[f"weight_{k}"].T + weights[f"bias_{k}"]
        layer = np.maximum(layer, 0) if k == 0 else layer
    expected = dict(zip(pl.read_parquet(states / "features.parquet")["sample_id"], layer[:, 0], strict=True))
    found = pl.read_parquet(results / "predictions/qwen3-vl-tiny/rlvr/17/psr_elsewhere/predictions.parquet")
    found = found.filter(dataset="slake", split="test", condition="original")
    assert len(found) == len(expected) > 20
    assert found["score"].to_list() == pytest.approx([expected[name] for name in found["sample_id"]], abs=1e-5)
    printed = pl.read_csv(checkout.folder / "tables/transfer.csv", infer_schema=False)
    assert set(printed["method"]) == {"psr", "psr_elsewhere"}
