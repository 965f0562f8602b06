"""The tables of metrics in the layout of the paper, and the meaning of their labels."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from dualread.plugins import load
from dualread.reporting.tables.values import Key, Value
from dualread.schema.tables import Layout
from tests.reporting.tables import reading
from tests.reporting.tables.layouts import CASCADE_METHODS, PAPER_METHODS, TOKEN, datasets, layout, method
from tests.specs import changed

# What the head of a column means in most tables, and titles and heads that mean nothing for the key of a cell.
_HEADS = {
    **dict.fromkeys(("Acc", "Acc."), ("accuracy",)),
    **{"AUROC": ("auroc",), "Brier": ("brier",), "ECE": ("ece15",), "AURC": ("aurc",), "HCE@.9": ("hce90",)},
    **dict.fromkeys(("CCG-AUC", "Natural", "Nat."), ("natural_ccg_auc",)),
    "Strict": ("strict_ccg_auc",),
    "Acc./AUROC (top); ECE-15/Brier (bottom)": ("accuracy", "auroc", "ece15", "brier"),
    **{"Prompts": ("cost_prompt_passes",), "Replays": ("cost_replay_passes",)},
    **{"Read": ("cost_read_tokens",), "Gen.": ("cost_generated_tokens",)},
    **{"Slope": ("calibration_slope",), "In the large": ("calibration_in_the_large",)},
    **{"Unique": ("unique_confidences",), "Endpt.": ("endpoint_share",), "Entropy": ("confidence_entropy",)},
    **{"Parse rate": ("parse_rate",), "Changed": ("answers_changed",)},
    "Retained": ("retained_low_percent", "retained_high_percent"),
    "Fixed prefix": ("fixed_prefix_ccg_auc",),
}
_SILENT = (
    "ID",
    "OOD",
    "Cost",
    "Measured",
    "Group",
    "Support",
    "Answers",
    "Confidence",
    "Components",
    "State",
    "Visual",
    "𝑛",
)
COSTLY = [
    method("sc2", label="SC@2", cost="$2t$"),
    method("sc8", label="SC@8", cost="$8t$"),
    method("semantic_uncertainty", label="Semantic unc.", cost="$8t$"),
    method("bicr", label="BICR", cost=r"$t+2\rho$"),
    method("dualread", label="DualRead", cost=r"$t+\tau$"),
]
_RLCR, _DUALREAD = method("rlcr", TOKEN, "rlcr", label="RLCR"), method("dualread", label="DualRead")
_RLVR, _PSR = method("rlvr", TOKEN, label="GRPO (RLVR)"), method("psr", label="PSR")
DIGITS = {
    **dict.fromkeys(("decisive_pairs", "strict_decisive_pairs", "source_images", "donor_images"), 1),
    **dict.fromkeys(("cost_read_tokens", "cost_generated_tokens"), 1),
    **dict.fromkeys(("reports", "reports_without_claim", "claims", "claims_without_label"), 0),
    **dict.fromkeys(("cost_prompt_passes", "cost_replay_passes", "unique_confidences"), 0),
    **dict.fromkeys(("retained_low_percent", "retained_high_percent"), 0),
}


def both_rules(metric):
    """The metrics of a cell with two lines: at the empirical threshold, and at the certified one."""
    return (metric, f"certified_{metric}")


def both_losses(kind):
    """The metrics of a cell with two lines: with the filter for either loss of a report."""
    return (f"filter_share_{kind}_at_risk_10", f"filter_any_{kind}_at_risk_10")


class Case(NamedTuple):
    """A table in the paper's layout.

    `columns` has what is special in it: the metrics of a column by its head, or the fields of a key; `silent`, titles
    that mean nothing; `source` is the name of the published table; `sample`, keys without which a table has no rows.
    """

    layout: Layout
    columns: Mapping = MappingProxyType({})
    silent: tuple[str, ...] = ()
    source: str | None = None
    sample: tuple[Key, ...] = ()

    @property
    def meanings(self):
        """What a label says about the key of a cell."""
        columns = _HEADS | {label: {} for label in (*_SILENT, *self.silent)} | self.columns
        return {
            **{name: of if isinstance(of, dict) else {"metrics": of} for name, of in columns.items()},
            **{label: {"subset": name} for name, label in _SUBSETS.items()},
            **{of.label: {"backbone": of.name} for of in self.layout.backbones},
            **{of.label: {"method": of.name} for of in self.layout.methods},
            **{of.label: {"dataset": of.name} for of in self.layout.datasets},
            "OOD averaged": {"dataset": "ood"},
        } | {name: of for name, of in self.columns.items() if isinstance(of, dict)}

    def build(self, name, values):
        return load("tables", name).build(values, self.layout)


_SUBSETS = {
    **{"open": "Open questions", "closed": "Closed questions"},
    **{"family:color": "color", "family:organ": "organ"},
}


def on(*ood, of=PAPER_METHODS):
    """The layout of methods on SLAKE and these data sets."""
    return layout(of, datasets=datasets(*ood))


def samples(metric, *subsets, dataset="slake"):
    """Keys without which a table has no rows."""
    return tuple(Key("qwen3-vl-2b", dataset, subset, "rlvr", metric) for subset in subsets)


_NULL = method("question_prior", "Null", label="Question prior")
_LIKELIHOOD = method("sequence_likelihood", "Likelihood", label="Sequence likelihood", cost="$t$")
_OF_ACTOR = {
    **{"Acc.ʳᵉᵃˡ": ("accuracy_real",), "Acc.ʰⁿ": ("accuracy_donor",), "VRS": ("vrs",), "VBR": ("vbr",)},
    **{"|ℰ|": ("decisive_pairs",), "Src/Dnr": ("source_images", "donor_images"), "DualRead": ("natural_ccg_auc",)},
}
CASES = {
    "main": Case(on(), {"CCG-AUC": {}}, source="main"),
    "cascade": Case(on(of=CASCADE_METHODS), {"PSR": {"method": "psr"}}, source="cascade"),
    "ood_acc": Case(on("vqa_rad", "path_vqa"), source="ood_acc"),
    "calib": Case(on("pmc_vqa", "omnimedvqa", "rexvqa", "vqa_med_2019"), source="calib"),
    "reliability": Case(on("vqa_rad", of=[_RLCR, _DUALREAD]), source="reliability"),
    "ccg_ood": Case(on("vqa_rad", "path_vqa", "vqa_med_2019"), source="ccg_ood"),
    "ccg": Case(
        on(of=[_DUALREAD, _RLVR]),
        {
            **{label: {"method": "dualread", "metrics": metrics} for label, metrics in _OF_ACTOR.items()},
            "GRPO (RLVR)": {"method": "rlvr", "metrics": ("natural_ccg_auc",)},
            "Paired Δ": {"method": "dualread-rlvr", "metrics": ("paired_delta",)},
        },
        silent=("Answers of the actor", "Natural CCG-AUC"),
        source="ccg",
    ),
    "ccg_denom": Case(
        on(of=PAPER_METHODS[1:5]),
        {"|ℰ|": ("decisive_pairs",), "Strict": ("strict_decisive_pairs",)},
        source="ccg_denom",
    ),
    "sc_tradeoff": Case(on("vqa_rad", of=COSTLY), source="sc_tradeoff"),
    "costs": Case(on("vqa_rad", of=COSTLY), source="sc_tradeoff"),
    "channel": Case(
        layout([_RLVR, _RLCR, method("bicr", label="BICR"), _DUALREAD], seeds=[43], datasets=datasets("vqa_rad")),
        source="channel",
    ),
    "base_models": Case(
        on("vqa_rad", of=[method("base", label="Base"), method("sequence_likelihood", label="Seq. lik.")])
    ),
    "branches": Case(on(of=[_PSR, method("per", label="PER"), _DUALREAD])),
    "estimators": Case(
        on(
            of=[
                _LIKELIHOOD,
                method("lmp_perplexity", "LM-Polygraph", label="Perplexity", cost="$t$"),
                method("lmp_rde", "LM-Polygraph", label="RDE", cost=r"$t+\tau$"),
            ]
        ),
        silent=("Likelihood", "LM-Polygraph"),
    ),
    "thresholds": Case(
        on(of=[_RLVR, _DUALREAD]),
        {
            "𝑐≥": both_rules("threshold_at_risk_10"),
            **{"Kept": both_rules("coverage_at_risk_10"), "Wrong": both_rules("kept_risk_at_risk_10")},
        },
        silent=("Target risk 10%", "Empirical (top); certified (bottom)"),
        sample=samples("threshold_at_risk_10", "all"),
    ),
    "by_family": Case(on(of=[_RLVR, _DUALREAD]), sample=samples("accuracy", "family:color", "family:organ")),
    "robustness": Case(
        on(of=[_RLVR, _PSR, _NULL]),
        {
            **{"original": {"subset": "condition:original"}, "no image": {"subset": "condition:no_image"}},
            **{"Acc. drop": ("accuracy_drop",), "Conf.": ("mean_confidence",), "Conf. drop": ("confidence_drop",)},
            "CCG-AUC": ("ccg_auc",),
        },
        sample=samples("accuracy", "condition:original", "condition:no_image"),
    ),
    "field": Case(
        on(
            of=[
                method("semantic_uncertainty", "Sampling", label="Semantic unc.", cost="$8t$"),
                method("vase", "Field", label="VASE", cost="$16t$"),
                method("hac_vase", "Field", label="HAC, VASE"),
            ]
        ),
        silent=("Sampling", "Field"),
    ),
    "training_signals": Case(
        on(
            of=[
                method("rlvr", "RLVR", label="Stated"),
                changed(_DUALREAD, group="RLVR"),
                method("head", "Trained head", label="Head"),
            ]
        ),
        {"CCG-AUC": {}},
        silent=("RLVR", "Trained head"),
    ),
    "layers": Case(
        on(
            of=[
                method(f"layer_{k}", "Layers", label=f"Layer at {depth}", cost=r"$t+\tau$")
                for k, depth in ((0, "0"), (50, ".5"))
            ]
        ),
        silent=("Layers",),
    ),
    "controls": Case(
        on("pmc_vqa", of=[_RLVR, _PSR, _NULL]),
        {
            **{"Same answer": ("strict_same_answer_ccg_auc",), "CCG-AUC": ("shuffled_ccg_auc",)},
            **{"Acc.": ("shuffled_accuracy",), "Drop": ("shuffled_accuracy_drop",), "AUROC": ("shuffled_auroc",)},
        },
        silent=("CCG-AUC, donor image", "Shuffled image"),
    ),
    "claims": Case(
        on("pmc_vqa", of=[_RLVR, _PSR]),
        {
            **{"CCG-AUC": {}, "Reports": ("reports",), "None": ("reports_without_claim",), "Claims": ("claims",)},
            **{"No label": ("claims_without_label",), "Both": ("supported_on_both_ccg_auc",)},
            **{"Kept": both_losses("kept"), "Unsup.": both_losses("unsupported"), "Empty": both_losses("none_kept")},
        },
        silent=("Reports and claims", "Labeled claims", "Filter, 10%", "Filter: share (top); any (bottom)"),
        sample=samples("filter_share_kept_at_risk_10", "all", dataset="pmc_vqa"),
    ),
}


def ours(name, key, value):
    """The keys in our table `name` for the paper's value of `key`; several where the paper prints one cell for them."""
    if name == "main" and key.metric == "accuracy" and key.method == "dualread":  # the actor's, once for its methods
        return {key._replace(method=of.name): value for of in PAPER_METHODS if of.actor == "rlvr"}
    if name == "channel":
        metric = key.metric.removesuffix(f"_{key.dataset}")
        return {key._replace(method=of, metric=metric): value for of in key.method.split("_and_")}
    if name == "ccg":
        names = {"actor": "dualread", "accuracy_hard_negative": "accuracy_donor"}
        renamed = {field: names.get(getattr(key, field), getattr(key, field)) for field in ("method", "metric")}
        return {key._replace(**renamed): value}
    if name == "ccg_denom" and key.metric.startswith("retained"):
        percent = Value(mean=100 * value.mean, std=None, n_runs=3, n=None)
        return {key._replace(metric=f"{key.metric}_percent"): percent}
    return {key: value}


def published_values(name):
    """The paper's values of a table under our names."""
    return {
        found: of
        for key, value in reading.published(CASES[name].source).items()
        for found, of in ours(name, key, value).items()
    }


@cache
def paper(name):
    """The table `name` of the paper's numbers."""
    return CASES[name].build(name, published_values(name))


def read(name, table):
    return reading.read(table, CASES[name].meanings)


def read_bold(name, table):
    return reading.read_bold(table, CASES[name].meanings)


def as_printed(key, value):
    text = reading.as_printed(value, DIGITS.get(key.metric, 3))
    return f"+{text}" if key.metric == "paired_delta" else text
