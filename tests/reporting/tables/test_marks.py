"""What small tables print: marks.txt has, per case, their lines, what their captions add, and their cells.

A mark is what stands around a number: dashes, daggers, circles, ditto marks, bold print. Other cases are differences,
shares, counts and costs that a table computes, and intervals and p-values.
"""

import re
from functools import cache
from pathlib import Path

import polars as pl

from dualread.plugins import load
from dualread.reporting.tables.families import PUBLISHED
from dualread.reporting.tables.values import Key, Value
from dualread.schema.tables import LabeledDataset
from dualread.stages import build_table
from tests import golden
from tests.reporting.tables import cases, contrasts, groups, synthetic
from tests.reporting.tables.contrasts import row
from tests.reporting.tables.layouts import (
    TINY,
    TOKEN,
    data_rows,
    datasets,
    estimate,
    layout,
    method,
    metrics,
    over_seeds,
)
from tests.specs import changed

# What the paper prints in bold, read off its Table main.
PAPER_BOLD = {
    ("qwen3-vl-2b", "slake", "auroc", "dualread"),
    ("qwen3-vl-2b", "slake", "natural_ccg_auc", "dualread"),
    ("qwen3-vl-2b", "slake", "strict_ccg_auc", "dualread"),
    ("qwen3-vl-2b", "ood6", "auroc", "saplma"),
    ("qwen3-vl-2b", "ood_ccg", "natural_ccg_auc", "base"),
    ("qwen3-vl-2b", "ood_ccg", "strict_ccg_auc", "base"),
    ("medgemma-1.5-4b", "slake", "auroc", "dualread"),
    ("medgemma-1.5-4b", "slake", "natural_ccg_auc", "dualread"),
    ("medgemma-1.5-4b", "slake", "strict_ccg_auc", "bicr"),
    ("medgemma-1.5-4b", "ood6", "auroc", "saplma"),
    ("medgemma-1.5-4b", "ood_ccg", "natural_ccg_auc", "dualread"),
    ("medgemma-1.5-4b", "ood_ccg", "strict_ccg_auc", "dualread"),
}
TWO = [method("rlvr", TOKEN), method("psr"), method("question_prior", "Null")]
BOTH = [method("dualread", label="DualRead"), method("rlvr", TOKEN, label="Token")]
COMPARED = [method("rlcr", label="RLCR"), method("question_prior", "Null", label="Prior"), BOTH[0]]
PER = method("per", label="P-Visual")
PMC = LabeledDataset(name="pmc", label="PMC-VQA", id=False)
CCG = "natural_ccg_auc"


def build(name, *rows, methods=TWO, **changes):
    return build_table.build(load("tables", name), metrics(*rows), changed(layout(methods, TINY), **changes))


def compare(name, *rows, methods=COMPARED, names=("c",), shown=()):
    of = changed(layout(methods, TINY, datasets=[*shown, *datasets()]), contrasts=tuple(names))
    return build_table.build(load("tables", name), contrasts.table(*rows), of)


def of_all(metric, values, **key):
    """Three seeds for every method, one list each."""
    return [of for name, seeds in values.items() for of in over_seeds(name, metric, seeds, **key)]


def of_method(name, values, **key):
    """Three seeds of every metric of a method."""
    return [of for metric, seeds in values.items() for of in over_seeds(name, metric, seeds, **key)]


def difference(metric, value, baseline="rlcr", **key):
    return row("dualread", metric, value, **{"baseline": baseline, "contrast": "c", **key})


def measured(name, completions, prompts, prompts_only, replays, read, generated):
    values = {"completions": completions, "prompt_passes": prompts, "prompt_only_passes": prompts_only,
              "replay_passes": replays, "read_tokens": read, "generated_tokens": generated}  # fmt: skip
    return of_method(name, {f"cost_{key}": [value] * 3 for key, value in values.items()})


def of_families(dataset, **sizes):
    """The same numbers of questions for both methods."""
    named = {f"family:{family}": n for family, n in sizes.items()}
    return [
        of
        for family, n in named.items()
        for name in ("dualread", "rlvr")
        for of in over_seeds(name, "accuracy", [0.5] * 3, dataset=dataset, subset=family, n=n)
    ]


def of_data(frame, *names):
    return build_table.build(load("tables", "data"), frame, layout([], datasets=datasets(*names)))


def answer_sets(**coverage):
    """Answer sets of all questions, and of the groups that have a coverage; a method without sets stands below."""
    rows = [
        estimate("psr", name, value, subset=subset)
        for subset, share in {"all": 0.9, **coverage}.items()
        for name, value in (
            ("questions_with_choices", 40.0),
            ("threshold_at_miss_10", 0.3),
            ("coverage_at_miss_10", share),
        )
        for name in [f"set_{name}"]
    ]
    shown = layout([method("psr"), method("none", label="None")], TINY, seeds=[17])
    return build_table.build(load("tables", "answer_sets"), metrics(*rows), shown)


def of_groups():
    """Two seeds of an actor, and one without seeds, whose group stands with both; a third seed is not shown."""
    shown = layout([method("psr", label="PSR"), method("base", actor="base", label="Base")])
    shown = changed(shown, backbones=(changed(shown.backbones[0], name="tiny", seeds=(17, 29)),))
    return build_table.build(load("tables", "subgroups"), groups.table(*groups.ROWS), shown)


SAME = {of.name: [0.3, 0.4, 0.5] for of in TWO}
ROBUST = {"dataset": "slake", "subset": "condition:no_image"}
OTHER_CCG = {"dualread": [0.7] * 3, "rlvr": [0.5, None, 0.5]}
STUDY = tuple(datasets("path_vqa", "pmc_vqa"))
NO_PAIRS = ("pmc_vqa", "test", "ood", 2000, 1000, 1000, 994, 6, 0, "no question is asked of two images", "f" * 64)
WITH_PMC = {"datasets": tuple(datasets("pmc_vqa"))}
RETRAINED = {"low_retrained": 0.0, "high_retrained": 0.2, "p_retrained": 0.03}
STATES_KEPT = [
    changed(of, states="generation", fitting=r"$8t+\tau$") if of.name == "dualread" else of for of in cases.COSTLY
]
# 1 greedy answer and 8 samples, in two encoded prompts; a prompt alone once; a replay once.
MEASURED = [
    *measured("sc8", 9.0, 2.0, 0.0, 0.0, 200.0, 252.25),
    *measured("bicr", 1.0, 2.0, 1.0, 0.0, 200.0, 28.5),
    *measured("dualread", 1.0, 1.0, 0.0, 1.0, 228.5, 28.5),
    *over_seeds("sc2", "cost_completions", [9.0] * 3),  # a part of its costs alone, which is not compared
]
PARSED = [*over_seeds("rlvr", "imputed_share", [0.5, 0.25, 0.125]), estimate("rlcr", "imputed_share", 0.0, seed=43)]
WEAK = row("rlcr", "strict_ccg_auc", 0.6, short="source")


def passed_over(metric, psr, rlvr, **evidence):
    """Two values of which the better one may rest on next to no answers; `evidence` is of rlvr."""
    rows = of_all(metric, {"psr": [psr] * 3, "rlvr": [rlvr] * 3}) + of_method("rlvr", evidence)
    return build("main" if metric != "brier" else "cascade", *rows)


CASES = {
    "ties at the printed precision are bold, and nulls never": lambda: build(
        "main", *of_all("auroc", {"rlvr": [0.8001] * 3, "psr": [0.7999] * 3, "question_prior": [0.9] * 3})
    ),
    # Of ranks, 29 images with right answers in one seed are too few, and as many with wrong ones; 30 are enough.
    "29 images with right": lambda: passed_over("auroc", 0.8, 0.9, images_with_right=[30.0, 29.0, 40.0]),
    "29 images with wrong": lambda: passed_over("auroc", 0.8, 0.9, images_with_wrong=[30.0, 29.0, 40.0]),
    "30 images": lambda: passed_over("auroc", 0.8, 0.9, images_with_right=[30.0] * 3, images_with_wrong=[30.0] * 3),
    # A Brier score is easy for an actor that is always wrong, and says something of one that is seldom wrong.
    "Brier, 29 with right": lambda: passed_over("brier", 0.2, 0.1, images_with_right=[29.0] * 3),
    "Brier, 29 with wrong": lambda: passed_over("brier", 0.2, 0.1, images_with_wrong=[29.0] * 3),
    # 1 - .1 of the answers may have no confidence.
    "more than .9 imputed in a seed": lambda: passed_over("brier", 0.2, 0.1, imputed_share=[0.91, 0.5, 0.5]),
    ".9 imputed": lambda: passed_over("brier", 0.2, 0.1, imputed_share=[0.9] * 3),
    "CCG-AUC of imputed": lambda: passed_over("strict_ccg_auc", 0.6, 0.9, imputed_share=[0.91] * 3),
    # Without a better founded value, all are compared. The worst value is not bold either way.
    "few images alone": lambda: passed_over("auroc", None, 0.9, images_with_right=[29.0] * 3),
    "the worse of two on few images": lambda: passed_over("auroc", 0.8, 0.7, images_with_right=[29.0] * 3),
    # The mean of CCG-AUC is over other data sets than that of the share, which is the same actor's.
    "a mean of few confidences": lambda: build(
        "main",
        *of_all("strict_ccg_auc", {"psr": [0.6] * 3, "rlvr": [0.9] * 3}, dataset="ood_ccg"),
        *over_seeds("rlvr", "imputed_share", [0.95] * 3, dataset="ood6"),
    ),
    "what an actor's methods share": lambda: build(
        "controls", *of_all("shuffled_accuracy", SAME), *of_all("shuffled_accuracy_drop", SAME)
    ),
    "what they must agree on": lambda: build(
        "controls", *of_all("shuffled_accuracy", {**SAME, "psr": [0.4, 0.5, 0.6]})
    ),
    "an actor whose methods are not adjacent": lambda: build(
        "main",
        *of_all("accuracy", {"rlvr": [0.5] * 3, "psr": [0.5] * 3}),
        estimate("base", "accuracy", 0.4, seed=0, actor="base"),
        methods=[method("rlvr"), method("base", TOKEN, "base"), method("psr")],
    ),
    "undefined values": lambda: build(
        "main",
        *over_seeds("psr", "auroc", [0.7, None, 0.9], reason="one class only"),
        *over_seeds("psr", CCG, [None] * 3, dataset="ood_ccg", reason="the study has no OOD data sets"),
    ),
    "daggers": lambda: build(
        "main",
        *of_method(
            "psr",
            {
                **{"strict_ccg_auc": [0.7] * 3, "strict_few_sources": [1.0] * 3},
                **{"strict_few_donors": [1.0, 0.0, 0.0], "strict_detectable": [0.71, 0.7349, 0.73]},
                "strict_ties": [0.0, 0.1, 0.349],
            },
        ),
    ),
    **{
        f"a dagger of {name}": lambda name=name: build(
            "controls", *of_method("psr", {f"{name}_ccg_auc": [0.7] * 3, f"{name}_few_donors": [0.0, 1.0, 0.0]})
        )
        for name in ("fixed_prefix", "strict_same_answer", "shuffled", "strict")
    },
    **{
        f"an ECE and floors {floors}": lambda floors=floors: build(
            "calib",
            *of_method("psr", {"ece15": [0.1] * 3, "ece15_noise_floor": floors}, dataset="pmc_vqa"),
            **WITH_PMC,
        )
        for floors in ([0.12] * 3, [0.12, 0.05, 0.12])
    },
    "no OOD data sets": lambda: build("ccg_ood", *over_seeds("psr", "strict_ccg_auc", [0.7] * 3), methods=TWO[1:2]),
    "components": lambda: build(
        "cascade", methods=[method("mine", label="Mine", readers=["combined", "psr", "p_visual"])]
    ),
    "two rules for a threshold": lambda: build(
        "thresholds",
        *of_method(
            "psr",
            {
                "threshold_at_risk_05": [0.8, 0.9, 1.0],
                "coverage_at_risk_05": [0.5] * 3,
                "kept_risk_at_risk_05": [0.07, 0.08, 0.09],
                "certified_threshold_at_risk_05": [0.9, 0.95, 1.0],
                "certified_coverage_at_risk_05": [None] * 3,
                "certified_kept_risk_at_risk_05": [0.04] * 3,
            },
            reason="too few images",
        ),
        *of_method(
            "psr",
            {"coverage_at_risk_05": [0.25] * 3, "kept_risk_at_risk_05": [None] * 3},
            dataset="ood6",
            reason="none",
        ),
        methods=TWO[1:2],
    ),
    "a family": lambda: build(
        "by_family",
        *over_seeds("rlvr", "brier", [0.3] * 3, subset="family:body_part", n=12),
        *over_seeds("psr", "brier", [0.1, 0.2, 0.3], subset="family:body_part", n=12),
        methods=TWO[:2],
    ),
    "no family": lambda: build("by_family"),
    # .9 would be the best; on few donor images in one run, it is neither bold nor beside others.
    "robustness": lambda: build(
        "robustness",
        *of_all("ccg_auc", {"rlvr": [0.5] * 3, "psr": [0.9] * 3}, **ROBUST),
        *of_all("ccg_few_donors", {"psr": [0.0, 1.0, 0.0]}, **ROBUST),
        *of_all("brier", {"rlvr": [0.5] * 3, "psr": [0.9] * 3}, **ROBUST),
        *of_all("confidence_drop", {"rlvr": [0.5] * 3, "psr": [0.9] * 3}, **ROBUST),
        *of_all("brier", {"rlvr": [0.5] * 3}, dataset="slake", subset="condition:original"),
    ),
    # Differences .3, .1 and .2: their mean is .2 and their deviation .1, though both methods spread more than that.
    "a difference per seed": lambda: build(
        "ccg", *of_all(CCG, {"dualread": [0.9, 0.6, 0.3], "rlvr": [0.6, 0.5, 0.1]}), methods=BOTH
    ),
    # With two seeds swapped, both means are the same, and other seeds are paired.
    "another difference per seed": lambda: build(
        "ccg", *of_all(CCG, {"dualread": [0.9, 0.6, 0.3], "rlvr": [0.1, 0.5, 0.6]}), methods=BOTH
    ),
    "an undefined difference": lambda: build(
        "ccg",
        *of_all(CCG, OTHER_CCG, reason="no decisive pair among 4 pairs"),
        *over_seeds("dualread", "natural_few_sources", [1.0] * 3),
        methods=BOTH,
    ),
    "differences of one method": lambda: build("ccg", methods=BOTH[:1]),
    "differences of three methods": lambda: build("ccg", methods=[*BOTH, method("psr", label="P_S")]),
    "differences of two actors": lambda: build("ccg", methods=[BOTH[0], method("rlcr", TOKEN, "rlcr")]),
    # 30/40, 33/60 and 40/50: between 55% and 80%; with two seeds swapped 40/40, 33/60 and 30/50
    **{
        f"retained shares of {counts}": lambda counts=counts: build(
            "ccg_denom",
            *of_method("rlvr", {"decisive_pairs": [40.0, 60.0, 50.0], "strict_decisive_pairs": counts}),
            methods=BOTH[1:],
        )
        for counts in ([30.0, 33.0, 40.0], [40.0, 33.0, 30.0])
    },
    "no decisive pair in a seed": lambda: build(
        "ccg_denom",
        *of_method("rlvr", {"decisive_pairs": [0.0, 6.0, 5.0], "strict_decisive_pairs": [0.0, 3.0, 4.0]}),
        methods=BOTH[1:],
    ),
    **{
        f"parse rates of seeds {seeds}": lambda seeds=seeds, rows=rows: build_table.build(
            load("tables", "channel"),
            metrics(*rows),
            layout([BOTH[1], method("rlcr", TOKEN, "rlcr")], TINY, seeds=seeds),
        )
        for seeds, rows in (((43,), PARSED), ((), PARSED), ((17, 43), PARSED[:2]))
    },
    # PMC-VQA records no families; the paper has numbers of PathVQA.
    "families": lambda: build(
        "families",
        *of_families("slake", body_part=12, position=7),
        *of_families("path_vqa", position=40, presence=430, other=1),
        methods=BOTH,
        datasets=STUDY,
    ),
    "families of runs that differ": lambda: build(
        "families", *of_families("slake", organ=12)[:3], *of_families("slake", organ=13)[3:], methods=BOTH
    ),
    "no families": lambda: build("families", *over_seeds("rlvr", "accuracy", [0.5] * 3), datasets=STUDY),
    "costs": lambda: build("costs", *MEASURED, methods=cases.COSTLY),
    "states of the pass that answers": lambda: build(
        "costs",
        *measured("dualread", 1.0, 1.0, 0.0, 0.0, 20.0, 3.0),
        *measured("sc8", 8.0, 2.0, 0.0, 0.0, 200.0, 252.0),
        methods=STATES_KEPT,
    ),
    "costs of claims, five of each report": lambda: build(
        "costs",
        *measured("dualread", 0.2, 0.2, 0.0, 0.2, 22.0, 8.0),  # as in the paper
        *measured("psr", 0.2, 0.2, 0.0, 0.2, 22.0, 8.0),  # what is before a claim is replayed, too
        methods=[cases.COSTLY[-1], method("psr", label="PSR", cost=r"$t+\rho$")],
    ),
    "costs as in the paper, and a method without notation": lambda: build(
        "costs",
        *measured("dualread", 1.0, 1.0, 0.0, 1.0, 20.0, 3.0),
        *measured("null", 1.0, 1.0, 0.0, 0.0, 10.0, 3.0),
        methods=[cases.COSTLY[-1], method("null", "Null", label="Null")],
    ),
    "intervals": lambda: compare(
        "intervals",
        row("rlcr", "auroc", 0.8),
        row("rlcr", "brier", None),
        row("rlcr", "squared_calibration_error", -0.003),
        row("rlcr", CCG, 0.6),
    ),
    "no interval": lambda: compare("intervals", row("rlcr", "auroc", 0.8, low=None, high=None)),
    "intervals on few images": lambda: compare("intervals", WEAK, {**WEAK, "dataset": "ood_ccg"}),
    "intervals of two data sets": lambda: compare(
        "intervals",
        row("question_prior", "auroc", 0.7, dataset="pmc"),
        row("rlcr", "auroc", 0.5, dataset="ood6"),
        *(difference("auroc", 0.1), row("rlcr", "auroc", 0.2, split="validation")),  # which are not shown
        shown=[PMC],
    ),
    "differences with intervals": lambda: compare(
        "paired",
        difference("auroc", 0.15),
        difference(CCG, -0.25, short="donor", low_retrained=-0.5, high_retrained=0.0004),
    ),
    "further metrics that the study names": lambda: build(
        "estimators", estimate("psr", "auroc", 0.7), estimate("psr", "log_loss", 1.25), estimate("psr", "e_aurc", 0.05)
    ),
    "intervals of a further metric": lambda: compare("intervals", row("rlcr", "log_loss", 1.25)),
    "a difference of a further metric": lambda: compare("paired", difference("log_loss", -1.25)),
    "an undefined difference with intervals": lambda: compare(
        "paired", difference("auroc", None), difference("brier", -0.1, seed_std=None, n_undefined=3)
    ),
    "differences in the order of the layout": lambda: compare(
        "paired",
        *(difference("auroc", 0.1, contrast=name, baseline=name) for name in ("per", "p_state", "rlcr")),
        row("dualread", "auroc", 0.9),
        names=["rlcr", "per"],
        methods=[*COMPARED, PER],
    ),
    "no contrasts": lambda: compare("paired", names=[]),
    **{
        f"a difference of {value}": lambda value=value: compare("paired", difference("auroc", value))
        for value in (0.0004, -0.0004, 0.0)
    },
    "p-values": lambda: compare(
        "significance",
        difference("auroc", 0.13, p_holm=0.0401),
        difference("brier", -0.1, p_holm=0.0499),
        difference("squared_calibration_error", -0.004, p_holm=0.3),
        difference(CCG, -0.2, p_holm=0.05),
        difference("strict_ccg_auc", None),
        difference("auroc", 0.01, p_holm=1.0, dataset="ood6"),
        difference("brier", 0.02, p_holm=0.0004, dataset="ood6"),
        difference("strict_ccg_auc", 0.3, p_holm=0.002, dataset="ood_ccg", short="donor"),
        difference("auroc", 0.1, "question_prior"),
        row("dualread", "brier", 0.7, baseline="question_prior", contrast="mine"),  # which is not shown
    ),
    "both p-values": lambda: compare(
        "significance",
        difference("auroc", 0.13, p_holm=0.002, p_holm_at_most=True, p_holm_retrained=0.04, **RETRAINED),
        difference("brier", -0.1, p_holm=0.0004, p_holm_at_most=True, p_holm_retrained=0.06, **RETRAINED),
    ),
    "no p-value": lambda: compare("significance", difference("auroc", 0.1, p=None, p_holm=None, low=None, high=None)),
    "significance of no contrast": lambda: compare("significance", names=()),
    "significance of two contrasts": lambda: compare("significance", names=("c", "mine")),
    # 3419 + 500 + 1000 = 4919 questions on 315 + 45 + 90 = 450 images; a digest is printed by its first 12 digits
    "data": lambda: of_data(data_rows(NO_PAIRS), "pmc_vqa"),
    "data of a study that shows one data set": lambda: of_data(data_rows(NO_PAIRS)),
    "data where intervals go by patients": lambda: of_data(
        data_rows(NO_PAIRS).with_columns(clusters=pl.when(dataset="slake").then(pl.col("images") // 3)), "pmc_vqa"
    ),
    "answer sets": answer_sets,
    "answer sets of groups": lambda: answer_sets(**{"group:sex=m": 0.95, "group:sex=f": 0.85, "group:sex": 0.8}),
    # The worst of two groups has the least ends; one group alone is no worst one.
    "groups": of_groups,
    **{
        f"{len(names)} data sets in distribution": lambda names=names: layout(
            TWO, datasets=[LabeledDataset(name=name, label=name, id=True) for name in names]
        )
        for names in ("", "ab")
    },
}
_SHOWN = (
    *("dataset", "role", "subset", "seed", "method", "group", "baseline", "metric", "column", "printed", "value"),
    *("mean", "std", "high", "p_holm", "reason"),
)


def lines_of(tex):
    """The lines of all tabulars below their heads."""
    for part in tex.split(r"\toprule")[1:]:
        yield from part.partition(r"\bottomrule")[0].strip().splitlines()


def sentences(table):
    return dict.fromkeys(
        of
        for line in table.tex.splitlines()
        if line.startswith(r"\caption")
        for of in re.split(r"(?<=\.) ", line[9:-1])
    )


@cache
def usual(name):
    """What the caption of a table of metrics or contrasts says without any value."""
    if name in ("data", "subgroups"):
        return {}
    return sentences(compare(name) if name in ("intervals", "paired", "significance") else build(name))


def text_of(table):
    """The lines, what the caption says beside that of an empty table, and the cells that have a value or a reason."""
    name = re.search(r"\\label\{tab:(\w+)", table.tex)[1]
    found = [*lines_of(table.tex), *(of for of in sentences(table) if of not in usual(name))]
    for cell in table.cells.iter_rows(named=True):
        shown = {name: cell.get(name) for name in _SHOWN} | {"bold": cell.get("bold") or None}
        if shown["reason"] != "not among the study's metrics":
            values = (round(of, 6) if isinstance(of, float) else of for of in shown.values() if of is not None)
            found.append(" · ".join(map(str, values)))
    return "\n".join(found)


def test_small_tables():
    found = {}
    for name, case in CASES.items():
        made = []
        found[name] = golden.message_of(lambda made=made, case=case: made.append(case()))
        if made and hasattr(made[0], "tex"):
            found[name] = text_of(made[0])
    golden.check(Path(__file__).with_name("marks.txt"), found)


def test_the_bold_cells_of_the_main_table_are_the_papers():
    paper = cases.paper("main")
    bold = paper.cells.filter("bold").select("backbone", "dataset", "metric", "method")
    assert set(bold.rows()) == PAPER_BOLD
    assert paper.tex.count(r"\mathbf") == len(PAPER_BOLD)


def test_an_ece_s_circle_is_explained_once_in_both_forms():
    table = CASES["an ECE and floors [0.12, 0.12, 0.12]"]()
    for text in (table.tex, table.html):
        assert text.count("An ECE that calibrated confidences reach by chance") == 1


def test_means_without_values_per_seed_give_neither_difference_nor_share():
    def mean(value):
        return Value(mean=value, std=None, n_runs=3, n=None)

    counts = {"decisive_pairs": 50.0, "strict_decisive_pairs": 30.0, CCG: 0.7}
    values = {Key("tiny", "slake", "all", of.name, name): mean(n) for of in BOTH for name, n in counts.items()}
    unknown = ["the values of single seeds are not known"]
    found = load("tables", "ccg").build(values, layout(BOTH, TINY))
    assert found.cells.filter(metric="paired_delta")["reason"].to_list() == unknown
    shares = load("tables", "ccg_denom").build(values, layout(BOTH, TINY))
    assert set(shares.cells["reason"].drop_nulls()) == set(unknown)
    given = values | {Key("tiny", "slake", "all", "dualread-rlvr", "paired_delta"): mean(0.25)}
    assert load("tables", "ccg").build(given, layout(BOTH, TINY)).cells["printed"][-1] == "+.250"


def test_the_confidence_channel_is_of_the_shown_seed_alone():
    rows = [{**of, "estimate": {17: 0.1, 29: 0.2, 43: 0.3}[of["seed"]]} for of in synthetic.rows_of("channel")]
    cells = synthetic.cells_of("channel", rows)
    assert {key.metric: text for key, text in cells.items()} == {
        **{"parse_rate": ".700", "unique_confidences": "0", "endpoint_share": ".300"}
    }


def test_the_paper_s_families_of_pathvqa_are_a_thousand_questions():
    assert sum(PUBLISHED["path_vqa"].values()) == 1000  # 10 + 51 + 429 + 4 + 506
