"""The layouts of the paper's tables, and functions that make rows of metrics tables."""

from dualread.artifacts.tables import from_rows
from dualread.schema.columns import DATA, METRICS
from dualread.schema.tables import Labeled, LabeledBackbone, LabeledDataset, LabeledMethod, Layout

BACKBONES = [
    Labeled(name="qwen3-vl-2b", label="Qwen3VL-2B"),
    Labeled(name="medgemma-1.5-4b", label="MedGemma1.5-4B"),
]
TOKEN, CHECK, HIDDEN = "Verbalized token", "Prompted self-check", "Hidden state"


def method(name, group=HIDDEN, actor="rlvr", label=None, readers=(), **optional):
    given = {"name": name, "label": label or name.upper(), "group": group, "actor": actor}
    return LabeledMethod(**given, readers=tuple(readers), **optional)


PAPER_METHODS = [
    method("base", TOKEN, "base", label="Base"),
    method("rlcr", TOKEN, "rlcr", label="RLCR"),
    method("dcpo", TOKEN, "dcpo", label="DCPO"),
    method("vl_calibration", TOKEN, "vl_calibration", label="VL-Cal."),
    method("rlvr", TOKEN, label="GRPO (RLVR)"),
    method("p_true", CHECK, label="P(True)"),
    method("self_probing", CHECK, label="Self-prob."),
    method("prompt_ensemble", CHECK, label="Prompt ens."),
    method("saplma", label="SAPLMA"),
    method("bicr", label="BICR"),
    method("dualread", label="DualRead"),
]
CASCADE_METHODS = [
    method("psr", label="PSR", readers=["psr"]),
    method("p_state", label="P-State", readers=["p_state"]),
    method("per", label="PER", readers=["p_state", "p_visual"]),
    method("dualread", label="DualRead", readers=["dualread", "p_state", "p_visual", "psr"]),
]


SLAKE = LabeledDataset(name="slake", label="SLAKE-test", id=True)
_OOD = {
    **{"vqa_rad": "VQA-RAD", "path_vqa": "PathVQA", "pmc_vqa": "PMC-VQA", "omnimedvqa": "OmniMedVQA"},
    **{"rexvqa": "ReXVQA", "vqa_med_2019": "VQA-Med 2019"},
}


def datasets(*ood):
    """Return the in-distribution data set and the named out-of-distribution ones."""
    return [SLAKE, *(LabeledDataset(name=name, label=_OOD[name], id=False) for name in ood)]


def layout(methods, backbones=BACKBONES, seeds=(17, 29, 43), datasets=(SLAKE,)):
    return Layout(
        study="embedded & small",
        backbones=tuple(LabeledBackbone(name=of.name, label=of.label, seeds=tuple(seeds)) for of in backbones),
        methods=tuple(methods),
        datasets=tuple(datasets),
    )


TINY = [Labeled(name="tiny", label="Tiny")]


def estimate(method, metric, value, *, seed=17, dataset="slake", actor="rlvr", n=100, reason=None, **key):
    return {
        "study": "embedded", "backbone": "tiny", "actor": actor, "seed": seed, "dataset": dataset, "split": "test",
        "subset": "all", "method": method, "metric": metric, "estimate": value, "low": None, "high": None, "n": n,
        "n_clusters": 10, "reason": reason if value is None else None, **key,
    }  # fmt: skip


def over_seeds(method, metric, values, **key):
    return [estimate(method, metric, value, seed=seed, **key) for seed, value in zip((17, 29, 43), values, strict=True)]


def metrics(*rows):
    return from_rows(list(rows), METRICS)


def data_rows(*more):
    """Return rows of the paper's English SLAKE with our roles of its train split (315, 45, 90 images), and `more`."""
    rows = [
        ("slake", "train", "fit", 14028, 3419, 315, 2069, 1350, None, "the study pairs no questions", "a" * 64),
        ("slake", "train", "stop", 14028, 500, 45, 300, 200, None, "the study pairs no questions", "a" * 64),
        ("slake", "train", "calibration", 14028, 1000, 90, 607, 393, None, "the study pairs no questions", "a" * 64),
        ("slake", "test", "test", 2094, 1061, 96, 645, 416, 442, None, "0123456789abcdef" * 4),
        *more,
    ]
    names = [name for name in DATA.columns if name != "clusters"]
    return from_rows([{"clusters": None, **dict(zip(names, row, strict=True))} for row in rows], DATA)
