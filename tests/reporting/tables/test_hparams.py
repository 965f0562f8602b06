"""The table of hyperparameters has every value of the paper, from the study that reproduces it, and names others."""

import inspect
import re
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

from dualread import plugins
from dualread.readers import _network
from dualread.reporting.tables import hparams
from dualread.reporting.tables._latex import text as latex
from dualread.reporting.tables.hparams import number, percent, told_apart
from dualread.schema.tables import StudySettings
from dualread.stages import build_table
from dualread.store.digest import digest_of
from dualread.study.config import resolve
from dualread.study.tables import StudyTables
from tests.golden import check
from tests.study.embedded import EMBEDDED, ROOT, merged

N_SLAKE_TRAIN = 4919

# The paper's Table hparams as text, but that PSR's loss is class-weighted, as the paper's text says. Not here:
# hardware and software, which are those of the run.
PAPER = {
    "Advantage estimator": "GRPO, group size 𝐺=8",
    "Rollout temperature / top-𝑝": "1.0 / 1.0",
    "PPO clip (low / high)": "0.2 / 0.2",
    "KL penalty": "disabled (coef=0)",
    "Optimizer": "AdamW, lr 1×10⁻⁶, β=(0.9, 0.95)",
    "LR schedule / warmup": "constant, 5% warmup",
    "Weight decay / grad-norm clip": "1×10⁻² / 1.0",
    "Precision / attention": "BF16 / SDPA",
    "Trainable params": "full model incl. vision tower",
    "Prompt batch / global batch": "128 / 128",
    "Max prompt / completion length": "4096 / 256",
    "Training exposure": "3 passes over SLAKE-train (117 steps)",
    "Seeds": "{17, 29, 43}",
    "PSR head (pre-answer)": "MLP 256–128, class-weighted BCE, AdamW lr 1.276×10⁻⁴, "
    "weight decay 2.017×10⁻⁶, batch 32, ≤200 epochs, early stopping (patience 20)",
    "PER heads (post-answer)": "P-State then P-Visual, linear pointwise BCE, 1000 full-batch steps, lr 1×10⁻³",
    "𝐿2 (P-State / P-Visual)": "1×10⁻⁴ / 1×10⁻³",
    "Visual pooling": "cosine-similarity pooling, temperature κ=0.1",
    "Fusion": "log-odds mean of calibrated PSR and PER, weight 0.5 (frozen a priori)",
    "Calibration": "one scalar temperature per branch, fit on held-out SLAKE-train images",
    "Decoding": "greedy (temperature 0)",
    "Invalid-confidence policy": "retain, impute 𝑐=0.5, report parse rate",
    "Bootstrap": "paired image-cluster, 𝐵=10,000, 95% percentile",
}
# What our table adds in each: the actors and backbones with another value, some of which the paper marks by a dagger.
ADDED = {
    "Precision / attention": ["; weights in training FP32"],
    "LR schedule / warmup": ["; rate 0 in step 1"],
    "PPO clip (low / high)": [" (DCPO: 0.28)"],
    "KL penalty": [" (DCPO: coef=1×10⁻³; VL-Cal.: coef=1×10⁻⁴)"],
    "Max prompt / completion length": [
        " (GRPO (RLVR) with MedGemma1.5-4B, RLCR with MedGemma1.5-4B, DCPO with MedGemma1.5-4B: 512; "
        "VL-Cal. with MedGemma1.5-4B: 1024)",  # its prompt and 256 image tokens would not fit into 512
        " (VL-Cal.: 512)",
    ],
}


def rows_of(changes, n_questions=N_SLAKE_TRAIN, units=None):
    study = resolve(merged(EMBEDDED, changes))
    config = study.as_mapping()
    settings = StudySettings(
        study=config["study"],
        config={name: config[name] for name in hparams.CONFIG},
        order={name: tuple(config[name]) for name in hparams.ORDERED},
        software={"torch": "2.13.0", "transformers": "5.23.0", "trl": "1.16.0"},
        trainings=(),
        constants=StudyTables(study).constants("hparams"),
        units=units,
    )
    # As a job file holds it: sorted, and every key text.
    settings = StudySettings.from_spec(settings.to_spec(), "build_table")
    # Two roles of the training split add up; no other split and no other data set counts.
    splits = [("slake", "train", n_questions - 1), ("slake", "train", 1), ("slake", "test", 9), ("x", "train", 9)]
    data = pl.DataFrame(splits, schema=["dataset", "split", "questions"], orient="row")
    table = build_table.build(hparams, data, settings)
    return table, dict(table.cells.select("row", "printed").iter_rows())


@pytest.fixture(scope="module")
def paper():
    return rows_of(yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text()))


@pytest.mark.parametrize("row", PAPER)
def test_every_value_of_the_paper(paper, row):
    text = paper[1][row]
    for added in ADDED.get(row, []):
        assert text.count(added) == 1
        text = text.replace(added, "")
    assert text == PAPER[row]


def test_the_table_has_every_row_once_in_four_sections(paper):
    tex = paper[0].tex
    for name, text in paper[1].items():
        assert tex.count(rf"{latex(name)} & {latex(text)} \\" + "\n") == 1
    assert tex.count(r"\multicolumn{2}{@{}l}{\emph{") == 4
    assert tex.count(r"\midrule") == 7  # after each title, and before all but the first


def test_patients_are_held_out_where_they_are_resampled(paper):
    rows = rows_of({}, units={"SLAKE-test": "patient", "VQA-RAD": "image"})[1]
    assert rows["Calibration"].endswith("fit on held-out SLAKE-train patients")
    assert rows["Bootstrap"].endswith(" percentile. Resampled are patients of SLAKE-test; images of VQA-RAD.")
    assert paper[1]["Calibration"].endswith("fit on held-out SLAKE-train images")


def _tuned(dropout):
    """What `snakemake tune` writes, with another best trial, for a study that was searched itself."""
    file = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())
    settings = {**file["methods"]["bicr"]["settings"], "dropout": dropout}
    tuned_on = {"study": "paper", "data": "slake", "backbone": "qwen3-vl-2b", "actor": "rlvr", "seed": 43, "trials": 50}
    tuned_on["settings"] = digest_of(settings)[:16]
    return merged(file, {"methods": {"bicr": {"settings": settings, "tuned_on": tuned_on}}})


_SAMPLED = {"temperature": 0.7, "top_p": 1.0, "n_samples": 1, "max_completion_tokens": 99}
_CORRECTED = {"rollouts": "vllm", "importance_sampling": {"mode": "token_truncate", "clip_max": 2.0}}
_LORA = {"lora": {"rank": 16, "alpha": 32, "dropout": 0.05, "targets": ["q_proj"]}}
CHANGES = {
    "settings that were edited after the search": {"methods": {"bicr": {"settings": {"dropout": 0.1}}}},
    "settings without a search": {"methods": {"bicr": {"tuned_on": None}}},
    # The actor's own limit, which VL-Calibration has, comes before that of a condition.
    "a condition with a decoding of its own": {"conditions": {"donor": {"decoding": _SAMPLED}}},
    "an engine that samples": {"backbones": {"medgemma-tiny": {"training": _CORRECTED}}},
    # 10 questions are 3 steps of 4 a pass, one and a half passes 4.5, so 5
    "changed settings": {
        "actors": {"rlvr": {"settings": {"group_size": 4, "steps": None, "passes": 1.5}}},
        "replay": {"kappa": 0.07},
        "metrics": {"bootstrap": {"replicates": 500}},
        "backbones": {"medgemma-tiny": {"seeds": [17]}},
    },
    # RLVR on the first backbone has 0.2; DCPO 0.28 there; all four 0.3 on the second
    "one backbone": {"backbones": {"medgemma-tiny": {"training": {"clip_high": 0.3}}}},
    # Another plugin may have settings that the others lack, and lack none that the table shows.
    "another training": {
        "actors": {"rlvr": {"training": "state_signal", "settings": {"weight": 0.1, "head_learning_rate": 1e-3}}}
    },
    "adapters": {"actors": {actor: {"settings": _LORA} for actor in ("rlvr", "rlcr", "dcpo", "vl_calibration")}},
    "neither training nor DualRead": {
        "actors": {name: None for name in EMBEDDED["actors"] if name != "base"},
        "methods": {name: None for name in EMBEDDED["methods"] if name != "base"},
        **{"conditions": {"donor_fixed_prefix": None, "shuffled_image": None}},
        "tables": {name: None for name in EMBEDDED["tables"] if name != "hparams"},
        **{"figures": None, "tuning": None, "contrasts": None},
    },
}


def test_the_rows_of_studies(paper):
    """Of the paper's study and the embedded one all rows; of a changed one those that differ. In hparams.txt."""

    def listed(rows, other=()):
        lines = [f"{name}: {text}" for name, text in rows.items() if not other or other.get(name) != text]
        return "\n".join([*lines, *(f"{name}: no such row" for name in other if name not in rows)])

    embedded = rows_of({}, n_questions=10)[1]
    found = {"the paper": listed(paper[1]), "embedded": listed(embedded)}
    found |= {name: listed(rows_of(change, n_questions=10)[1], embedded) for name, change in CHANGES.items()}
    found["a search in the same study"] = listed(rows_of(_tuned(0.1))[1], paper[1])
    python = rf"Python {sys.version_info.major}\.{sys.version_info.minor}"
    check(
        Path(__file__).with_name("hparams.txt"), {name: re.sub(python, "Python", text) for name, text in found.items()}
    )


def test_the_printed_optimizer_of_psr_is_the_one_in_the_code():
    assert inspect.signature(_network.train).parameters["optimizer"].default == "AdamW"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (8, "8"),
        (4919, "4919"),
        (10_000, "10,000"),
        (0.0, "0"),
        (1.0, "1.0"),
        (0.05, "0.05"),
        (0.01, "1×10⁻²"),
        (1.276e-4, "1.276×10⁻⁴"),
        (3.100531992382474e-05, "3.100531992382474×10⁻⁵"),
    ],
)
def test_numbers_keep_every_digit(value, expected):
    assert number(value) == expected


def test_percents_are_exact():
    assert [percent(value) for value in (0.05, 0.075, 0.95, 0.003)] == ["5%", "7.5%", "95%", "0.3%"]


def test_only_the_label_that_explains_a_difference_is_named():
    by_actor = {(b, a): str(a == "x_y") for b in "pq" for a in ("z", "x_y")}
    assert told_apart(by_actor) == "False (x_y: True)"
    assert told_apart({("p",): "1", ("q",): "1"}) == "1"
    assert told_apart({("p", "a"): "1", ("p", "b"): "2", ("q", "a"): "3", ("q", "b"): "3"}) == (
        "1 (b with p: 2; a with q, b with q: 3)"
    )


def test_a_constant_of_a_plugin_that_is_shown_is_in_the_key(monkeypatch):
    """Plugins that a table names are in no digest of its code: an edited optimizer has to make it again."""
    constants = StudyTables(resolve(EMBEDDED)).constants("hparams")
    assert constants["readers.bicr.OPTIMIZER"] == "Adam"
    assert constants["readers.bicr.SPACE"]
    assert "readers.saplma.SPACE" not in constants
    source = inspect.getsource(hparams)
    assert "plugins" not in source.replace("of plugins, by family", "")  # so that it reads nothing besides
    declared = plugins.declared
    monkeypatch.setattr(
        plugins, "declared", lambda *of: "AdamW" if of == ("readers", "bicr", "OPTIMIZER") else declared(*of)
    )
    assert ", AdamW lr " in rows_of({})[1]["BICR head"]
    assert StudyTables(resolve(EMBEDDED)).constants("hparams") != constants
