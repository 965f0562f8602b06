"""What figures are drawn from: small tables and layouts, by the name of their case in figures.txt."""

import math
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import from_rows
from dualread.reporting.figures import (
    counterfactuals,
    forest,
    layers,
    reliability,
    reliability_domains,
    risk_coverage,
    robustness,
    subgroups,
    training,
    training_signals,
)
from dualread.reporting.figures.drawing import Drawing
from dualread.reporting.figures.reliability_diagram import diagram
from dualread.schema.columns import CONTRASTS, DIFFICULTY
from dualread.schema.tables import FigureLayout, LabeledCondition
from tests.reporting import forests
from tests.reporting.figures.answers import LAYOUT, answers, labeled, of_all
from tests.reporting.figures.logs import LAYOUT as TRAINING
from tests.reporting.figures.logs import LOGS, log
from tests.reporting.forests import LABELS, minus, own
from tests.reporting.tables import groups
from tests.reporting.tables.layouts import estimate, metrics
from tests.specs import changed

MANY = labeled(**{str(k): str(k) for k in range(8)})  # more than there are colors


def of_metrics(rows) -> dict[str, pl.DataFrame]:
    return {"metrics": metrics(*rows)}


def between(value):
    """An interval of .1 on either side."""
    return {} if value is None else {"low": value - 0.1, "high": value + 0.1}


# --- reliability, risk and coverage: .2 and .25 are in [3/15, 4/15), 1.0 and .95 in [14/15, 1]
FOUR = answers([0.2, 0.25, 1.0, 0.95], [False, True, True, True])
# Ten images with .5, nine with .9: bins of fewer than ten are drawn weaker.
FEW = pl.concat(
    [
        answers([0.5] * 10, [True] * 9 + [False]),
        answers([0.9] * 30, [True] * 30, images=[f"image {k % 9}" for k in range(30)]),
    ]
)
# Two seeds of one method: 17 has .2 wrong and .9 right, 29 has .2 right and 1.0 wrong.
# Pooled, (2 |.5 - .2| + |1 - .9| + |0 - 1|) / 4 = .425; the mean over the two seeds would be .525.
SEEDS = (answers([0.2, 0.9], [False, True], seed=17), answers([0.2, 1.0], [True, False], seed=29))
# Seed 17 is right, wrong, right in the order of confidence, seed 29 wrong, right, right. Their risks are 0, 1/2, 1/3
# and 1, 1/2, 1/3.
RISKS = (
    answers([0.9, 0.8, 0.7], [True, False, True], seed=17),
    answers([0.9, 0.8, 0.7], [False, True, True], seed=29),
)
RAD = {"datasets": labeled(slake="SLAKE-test", rad="VQA-RAD")}


def of_two_sets(*frames):
    given = of_all(*frames)["answers"]
    return {"answers": pl.concat([given, of_all()["answers"].with_columns(dataset=pl.lit("rad"))])}


# --- layers: the mean over two seeds by depth
LAYERS = FigureLayout(
    study="embedded",
    backbones=labeled(tiny="Tiny"),
    methods=labeled(layer_100="Layer at 1", layer_0="Layer at 0"),
    datasets=labeled(slake="SLAKE"),
    layers={"layer_0": 0.0, "layer_100": 1.0},
)


def of_layers(**values):
    return of_metrics(
        estimate(method, "auroc", value, seed=seed, **between(value))
        for method, of in values.items()
        for seed, value in enumerate(of)
    )


# --- robustness: accuracies .8, .7, .5, .3, and the same of mean confidences, but for those of `values` by method
ROBUSTNESS = FigureLayout(
    study="embedded",
    backbones=labeled(tiny="Tiny", other="Other"),
    methods=labeled(rlvr="GRPO (RLVR)", psr="PSR"),
    datasets=labeled(slake="SLAKE"),
    conditions=(
        LabeledCondition(name="blur_2", image="blur", strength=1.0),
        LabeledCondition(name="blur_1", image="blur", strength=0.5),
        LabeledCondition(name="no_image", image="none"),
    ),
)
USUAL = [0.8, 0.7, 0.5, 0.3]


def of_conditions(**values):
    return of_metrics(
        estimate(method, metric, value, seed=seed, backbone=backbone, subset=f"condition:{name}", **between(value))
        for backbone in ("tiny", "other")
        for method in ("rlvr", "psr")
        for seed in (17, 29)
        for metric in ("accuracy", "mean_confidence")
        for of in [values.get(method, USUAL) if metric == "mean_confidence" else USUAL]
        for name, value in zip(("original", "blur_1", "blur_2", "no_image"), of, strict=True)
    )


# --- training signals: by method its actor, and accuracy, different confidences and CCG-AUC by seed
SIGNALS = FigureLayout(
    study="signals",
    backbones=labeled(tiny="Tiny"),
    actors=labeled(rlvr="RLVR", state="Head, trained"),
    methods=labeled(rlvr="Stated", head="Head", stated="Stated"),
    datasets=labeled(slake="SLAKE"),
)
RUNS = {
    "rlvr": ("rlvr", {17: (0.5, 3, 0.6), 29: (0.6, 5, 0.7)}),
    "head": ("state", {17: (0.4, 100, 0.8), 29: (0.2, 200, None)}),
    "stated": ("state", {17: (0.4, 4, 0.5)}),
}


def of_signals():
    return of_metrics(
        estimate(method, name, value, seed=seed, actor=actor)
        for method, (actor, seeds) in RUNS.items()
        for seed, values in seeds.items()
        for name, value in zip(("accuracy", "unique_confidences", "natural_ccg_auc"), values, strict=True)
    )


# --- forest
FOREST = FigureLayout(
    study="s",
    backbones=labeled(tiny="Tiny", other="Other"),
    methods=labeled(**LABELS),
    datasets=labeled(slake="SLAKE-test"),
)
CCG = "natural_ccg_auc"
ROWS = [
    *forests.VALUES,
    *forests.TESTS,
    *(own(method, 0.6, CCG) for method in LABELS),
    *(minus(method, null, 0.9, metric=CCG) for method in "ab" for null in ("q", "qa")),
    *({**row, "backbone": "other"} for row in (*forests.VALUES, *forests.TESTS)),
    own("a", 0.1, "brier"),
    {**own("a", 0.2), "dataset": "elsewhere"},
]


def forest_of(rows=ROWS, limit=0.9, layout=FOREST):
    tables = {"contrasts": from_rows(rows, CONTRASTS)}
    if limit is not None:
        row = {name: value for name, value in own(None, limit).items() if name in DIFFICULTY.columns}
        known = [{**row, "actor": "rlvr", "reading": reading} for reading in ("own", "exchanged")]
        tables["difficulty"] = from_rows(known, DIFFICULTY)
    return forest.draw(tables, layout)


# --- counterfactuals
EXAMPLES = FigureLayout(
    study="embedded", backbones=labeled(tiny="Tiny"), methods=labeled(psr="PSR", rlvr="GRPO (RLVR)")
)


def pair(sample_id, real, donor, *, answers=("yes", "no"), correct=(True, False)):
    return {
        **{"backbone": "tiny", "method": "psr", "dataset": "slake", "seed": 17, "sample_id": sample_id},
        **{"question": f"What does {sample_id} show, and is there anything else that must be seen in this image?"},
        **{"source_image_id": f"{sample_id}-source", "donor_image_id": f"{sample_id}-donor"},
        **{"canonical_answer_real": answers[0], "canonical_answer_donor": answers[1]},
        **{"correct_real": correct[0], "correct_donor": correct[1]},
        **{"confidence_real": real, "confidence_donor": donor},
        **{"reference_real": ["yes"], "reference_donor": ["left upper lobe of the lung", "lobe"]},
    }


# Drops of the answers that change: a 1/4, b 1/2, c 1/2, d -1/8; of those that stay: e 3/4, f 1/8. g is not decisive.
PAIRS = [
    *(pair("a", 0.75, 0.5), pair("b", 0.75, 0.25), pair("c", 1.0, 0.5), pair("d", 0.5, 0.625)),
    *(pair("e", 1.0, 0.25, answers=("yes", "yes")), pair("f", 0.5, 0.375, answers=("yes", "yes"))),
    pair("g", 1.0, 0.0, correct=(True, True)),
]


def examples(image: Path, rows=PAIRS, layout=EXAMPLES) -> Drawing:
    """Draw pairs that show one image, on each backbone of the layout."""
    told = [{**row, "method": "rlvr", "confidence_real": 1.0, "confidence_donor": 1.0} for row in rows]
    shown = {"images_real": [str(image)], "images_donor": [str(image)] * 2}
    table = pl.DataFrame([{**row, **shown, "backbone": of.name} for of in layout.backbones for row in (*rows, *told)])
    return counterfactuals.draw({"pairs": table}, layout)


# Each gets a picture.
CASES = {
    "a diagram": lambda _: diagram({"a$_b$": FOUR}),
    "a diagram of few images": lambda _: diagram({"mine": FEW}),
    "reliability of two seeds": lambda _: reliability.draw(of_all(*SEEDS), LAYOUT),
    "reliability on two data sets": lambda _: reliability.draw(
        of_two_sets(*SEEDS), changed(LAYOUT, **RAD, backbones=LAYOUT.backbones[:1])
    ),
    # In the order of the layout, which is not that of the answers.
    "reliability by domain": lambda _: reliability_domains.draw(
        of_two_sets(*SEEDS), changed(LAYOUT, datasets=RAD["datasets"][::-1])
    ),
    "risk and coverage": lambda _: risk_coverage.draw(
        of_all(*RISKS, answers([0.5] * 2, [False] * 2, backbone="other")), LAYOUT
    ),
    "risk without an error": lambda _: risk_coverage.draw(of_all(), LAYOUT),
    "risk of 8 methods": lambda _: risk_coverage.draw(of_all(), changed(LAYOUT, methods=MANY)),
    "layers": lambda _: layers.draw(of_layers(layer_0=[0.5, 0.6], layer_100=[0.8, 0.7]), LAYERS),
    "a layer without a value in a seed": lambda _: layers.draw(
        of_layers(layer_0=[0.5, None], layer_100=[0.8, 0.7]), LAYERS
    ),
    "a method without a layer": lambda _: layers.draw(of_layers(), changed(LAYERS, layers={"layer_100": 1.0})),
    # The accuracy stands once, because both methods judge the same answers.
    "robustness": lambda _: robustness.draw(of_conditions(psr=[0.9, 0.9, 0.85, None]), ROBUSTNESS),
    "robustness without conditions": lambda _: robustness.draw(of_conditions(), changed(ROBUSTNESS, conditions=())),
    "robustness of 8 methods": lambda _: robustness.draw(of_conditions(), changed(ROBUSTNESS, methods=MANY)),
    # The head has no CCG-AUC of the second seed.
    "training signals": lambda _: training_signals.draw(of_signals(), SIGNALS),
    "training signals of 7 labels": lambda _: training_signals.draw(
        of_signals(), changed(SIGNALS, methods=[changed(of, name="head") for of in MANY[:7]])
    ),
    "groups": lambda _: subgroups.draw(
        {"subgroups": groups.table(*groups.ROWS, groups.row("psr", "x", "auroc", 0.6, by="site"))},
        FigureLayout(
            study="mine",
            backbones=labeled(tiny="Tiny"),
            methods=labeled(psr="PSR", base="Base"),
            datasets=labeled(slake="SLAKE"),
        ),
    ),
    # Missing values and NaN are gaps, and a mean needs all seeds. The band of step 1 is the mean .6 and the deviation
    # (.1 + .3) / 2 to both sides.
    "training": lambda _: training.draw(LOGS, TRAINING),
    # Steps 1 and 3 get dots; 5 and 6 are joined by a line.
    "training with values between gaps": lambda _: training.draw(
        {"train_log/tiny/rlvr/17": log(reward={1: 0.1, 2: math.nan, 3: 0.3, 4: math.nan, 5: 0.5, 6: 0.6})}, TRAINING
    ),
    "no log of an actor": lambda _: training.draw({"other": LOGS["train_log/tiny/rlvr/17"]}, TRAINING),
    "a step twice": lambda _: training.draw(
        {"train_log/tiny/rlvr/17": pl.concat([log(reward={1: 0.1}), log(reward={1: 0.2})])}, TRAINING
    ),
    "a log without steps": lambda _: training.draw(
        {"train_log/tiny/rlvr/17": log(reward={1: 0.1}).drop("step")}, TRAINING
    ),
    "training of 8 actors": lambda _: training.draw({}, changed(TRAINING, actors=MANY)),
    # The second backbone has no pairs, and so one panel.
    "a forest": lambda _: forest_of(),
    "a forest without nulls": lambda _: forest_of(forests.VALUES[:2], limit=None),
    "a forest of seeds": lambda _: forest_of(
        [own("a", 0.8, n_seeds=3, low_retrained=0.6, high_retrained=0.95)], limit=None
    ),
    "a forest on few images": lambda _: forest_of([own("a", 0.8, short="donor"), own("b", None)], limit=None),
    "counterfactuals": examples,
    "counterfactuals of two backbones": lambda image: examples(
        image, PAIRS[:1], changed(EXAMPLES, backbones=labeled(tiny="Tiny", other="Other"))
    ),
    "no counterfactuals": lambda image: examples(image, PAIRS[-1:]),
}
