"""The table of hyperparameters has every value of the paper, from the study that reproduces it, and names others."""

import inspect

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


def rows_of(changes, n_questions=N_SLAKE_TRAIN):
    study = resolve(merged(EMBEDDED, changes))
    config = study.as_mapping()
    settings = StudySettings(
        study=config["study"],
        config={name: config[name] for name in hparams.CONFIG},
        order={name: tuple(config[name]) for name in hparams.ORDERED},
        software={"torch": "2.13.0", "transformers": "5.23.0", "trl": "1.16.0"},
        trainings=(),
        constants=StudyTables(study).constants("hparams"),
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


def test_the_rows_that_the_paper_lacks(paper):
    added = {"Hardware", "Software", "Calibration error", "Max prompt / answer length", "Generation engine"}
    added |= {"Rollouts sampled by"}
    assert set(paper[1]) - set(PAPER) == {*added, "SAPLMA head", "BICR head"}
    assert paper[1]["Max prompt / answer length"] == (
        "4096 (MedGemma1.5-4B: 1024) / 256 (VL-Cal.: 512)"  # of what is reported, not of the training
    )
    assert paper[1]["Hardware"].startswith("4 processes (MedGemma1.5-4B: 8 processes) per run")
    assert paper[1]["Software"].endswith(", PyTorch 2.13.0, Transformers 5.23.0, TRL 1.16.0")
    assert paper[1]["Calibration error"] == "15 bins of equal width"


def test_the_table_has_every_row_once_in_four_sections(paper):
    tex = paper[0].tex
    for name, text in paper[1].items():
        assert tex.count(rf"{latex(name)} & {latex(text)} \\" + "\n") == 1
    assert tex.count(r"\multicolumn{2}{@{}l}{\emph{") == 4
    assert tex.count(r"\midrule") == 7  # after each title, and before all but the first


def test_the_papers_study_says_that_its_bicr_was_tuned_on_phantoms(paper):
    head = paper[1]["BICR head"]
    assert head.startswith("MLP 1024–512, ")
    assert ", Adam lr " in head
    assert "settings not tuned for this study" in head
    assert "qwen3-vl-tiny/rlvr/43 to phantoms, study embedded" in head


def test_settings_from_a_search_in_the_same_study_are_said_to_be_so():
    file = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())
    # What `snakemake tune` writes, with another best trial.
    tuned_on = {"study": "paper", "data": "slake", "backbone": "qwen3-vl-2b", "actor": "rlvr", "seed": 43, "trials": 50}
    settings = {**file["methods"]["bicr"]["settings"], "dropout": 0.1}
    found = {
        "methods": {"bicr": {"settings": settings, "tuned_on": {**tuned_on, "settings": digest_of(settings)[:16]}}}
    }
    _, rows = rows_of(merged(file, found))
    assert "dropout 0.1" in rows["BICR head"]
    assert rows["BICR head"].endswith("chosen in 50 trials on the answers of qwen3-vl-2b/rlvr/43 to slake")


def test_settings_that_were_edited_after_the_search_are_not_said_to_be_chosen():
    _, rows = rows_of({"methods": {"bicr": {"settings": {"dropout": 0.1}}}})
    assert "settings changed by hand" in rows["BICR head"]
    assert "settings" not in rows_of({})[1]["BICR head"]  # the embedded study has what it found


def test_settings_without_a_search_are_not_said_to_be_chosen():
    _, rows = rows_of({"methods": {"bicr": {"tuned_on": None}}})
    assert rows["BICR head"].endswith("settings as configured, from no search")


def test_a_condition_with_a_decoding_of_its_own_is_named():
    sampled = {"temperature": 0.7, "top_p": 1.0, "n_samples": 1, "max_completion_tokens": 99}
    _, rows = rows_of({"conditions": {"donor": {"decoding": sampled}}})
    assert rows["Decoding"] == "greedy (temperature 0) (donor: sampled (temperature 0.7))"
    # The actor's own limit, which VL-Calibration has, comes before that of a condition.
    assert rows["Max prompt / answer length"] == (
        "512 / 64 (donor with Base, donor with GRPO (RLVR), donor with RLCR, donor with DCPO: 99; "
        "original with VL-Cal., donor with VL-Cal.: 96)"
    )


def test_an_engine_with_its_own_environment_is_named_as_such(paper):
    assert paper[1]["Generation engine"].startswith("vllm_engine, in an environment of its own")
    assert rows_of({})[1]["Generation engine"].startswith("transformers_engine, in the environment of all")


def test_what_samples_for_trainings_is_named_where_it_is_an_engine(paper):
    assert paper[1]["Rollouts sampled by"] == "vllm, no importance-sampling correction"
    assert "Rollouts sampled by" not in rows_of({})[1]
    corrected = {"rollouts": "vllm", "importance_sampling": {"mode": "token_truncate", "clip_max": 2.0}}
    rows = rows_of({"backbones": {"medgemma-tiny": {"training": corrected}}})[1]
    with_medgemma = "MedGemma (tiny): vllm, importance-sampling correction (token_truncate, ≤2.0)"
    assert rows["Rollouts sampled by"] == f"the trained model ({with_medgemma})"


def test_a_changed_setting_is_printed():
    changes = {
        "actors": {"rlvr": {"settings": {"group_size": 4, "steps": None, "passes": 1.5}}},
        "replay": {"kappa": 0.07},
        "metrics": {"bootstrap": {"replicates": 500}},
        "backbones": {"medgemma-tiny": {"seeds": [17]}},
    }
    _, rows = rows_of(changes, n_questions=10)
    assert rows["Advantage estimator"] == "GRPO, group size 𝐺=4 (RLCR, DCPO, VL-Cal.: 𝐺=8)"
    # 10 questions are 3 steps of 4 a pass, one and a half passes 4.5, so 5
    assert rows["Training exposure"].startswith("1.5 passes over SLAKE-train (5 steps) (RLCR, DCPO, VL-Cal.: 8 ")
    assert rows["Visual pooling"].endswith("κ=0.07")
    assert rows["Bootstrap"] == "paired image-cluster, 𝐵=500, 95% percentile"
    assert rows["Seeds"] == "{17, 29, 43} (MedGemma (tiny): {17})"


def test_a_setting_of_one_actor_on_one_backbone_names_both():
    _, rows = rows_of({"backbones": {"medgemma-tiny": {"training": {"clip_high": 0.3}}}})
    # RLVR on the first backbone has 0.2; DCPO 0.28 there; all four 0.3 on the second
    second = ", ".join(f"{actor} with MedGemma (tiny)" for actor in ("GRPO (RLVR)", "RLCR", "DCPO", "VL-Cal."))
    assert rows["PPO clip (low / high)"] == f"0.2 / 0.2 (DCPO with Qwen3-VL (tiny): 0.28; {second}: 0.3)"


def test_a_study_without_training_or_dualread_has_no_such_rows():
    methods = {name: None for name in EMBEDDED["methods"] if name != "base"}
    changes = {
        "actors": {name: None for name in EMBEDDED["actors"] if name != "base"},
        "methods": methods,
        **{"conditions": {"donor_fixed_prefix": None, "shuffled_image": None}},
        "tables": {name: None for name in EMBEDDED["tables"] if name != "hparams"},
        **{"figures": None, "tuning": None, "contrasts": None},
    }
    table, rows = rows_of(changes)
    evaluated = {"Decoding", "Max prompt / answer length", "Generation engine", "Invalid-confidence policy"}
    assert set(rows) == {*evaluated, "Calibration error", "Bootstrap", "Software"}
    assert table.tex.count(r"\emph{") == 1


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


def test_an_adapter_is_told_from_full_fine_tuning():
    name, row = "Trainable params", rows_of({})[1]["Trainable params"]
    assert row == "full model incl. vision tower"
    lora = {"lora": {"rank": 16, "alpha": 32, "dropout": 0.05, "targets": ["q_proj"]}}
    changes = {"actors": {actor: {"settings": lora} for actor in ("rlvr", "rlcr", "dcpo", "vl_calibration")}}
    printed = rows_of(changes)[1]
    assert printed[name] == "LoRA of the language model (q_proj), rank 16, α=32, dropout 0.05"
    assert "adapter in training" in printed["Precision / attention"]


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
