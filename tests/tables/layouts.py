"""The layouts of the paper's tables, and a maker of small metrics tables."""

from dualread.artifacts.schemas.data import DATA
from dualread.artifacts.schemas.metrics import METRICS
from dualread.artifacts.tables import from_rows

BACKBONES = [
    {"name": "qwen3-vl-2b", "label": "Qwen3VL-2B"},
    {"name": "medgemma-1.5-4b", "label": "MedGemma1.5-4B"},
]
TOKEN, CHECK, HIDDEN = "Verbalized token", "Prompted self-check", "Hidden state"


def method(name, group=HIDDEN, actor="rlvr", label=None, readers=(), **optional):
    label = label or name.upper()
    return {"name": name, "label": label, "group": group, "actor": actor, "readers": list(readers), **optional}


PAPER_METHODS = [
    *(method(name, TOKEN, name) for name in ("base", "rlcr", "dcpo", "vl_calibration", "rlvr")),
    *(method(name, CHECK) for name in ("p_true", "self_probing", "prompt_ensemble")),
    *(method(name) for name in ("saplma", "bicr", "dualread")),
]
CASCADE_METHODS = [
    method("psr", readers=["psr"]),
    method("p_state", readers=["p_state"]),
    method("per", readers=["p_state", "p_visual"]),
    method("dualread", readers=["dualread", "p_state", "p_visual", "psr"]),
]


def layout(methods, backbones=BACKBONES, seeds=(17, 29, 43)):
    return {
        "study": "embedded & small",
        "backbones": [{**backbone, "seeds": list(seeds)} for backbone in backbones],
        "methods": list(methods),
        "datasets": [{"name": "slake", "label": "SLAKE-test", "id": True}],
    }


TINY = [{"name": "tiny", "label": "Tiny"}]


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
    """The paper's English SLAKE with our roles of its train split (315, 45 and 90 images), and `more` rows."""
    rows = [
        ("slake", "train", "fit", 14028, 3419, 315, 2069, 1350, None, "the study pairs no questions", "a" * 64),
        ("slake", "train", "stop", 14028, 500, 45, 300, 200, None, "the study pairs no questions", "a" * 64),
        ("slake", "train", "calibration", 14028, 1000, 90, 607, 393, None, "the study pairs no questions", "a" * 64),
        ("slake", "test", "test", 2094, 1061, 96, 645, 416, 442, None, "0123456789abcdef" * 4),
        *more,
    ]
    return from_rows([dict(zip(DATA.columns, row, strict=True)) for row in rows], DATA)
