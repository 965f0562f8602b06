"""The tables of means over seeds: a function each, which returns its cells as they have to be."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.workflow.recount.cells import Expected
from tests.workflow.recount.reports import COUNTS
from tests.workflow.recount.values import CCG, Values

Cells = Iterator[Expected]

# The paper's "Dataset Details", PathVQA.
_PATH_VQA = {"modality": 10, "position": 51, "presence": 429, "size": 4, "other": 506}
_DIGITS = {
    **dict.fromkeys(("decisive_pairs", "strict_decisive_pairs", "source_images", "donor_images"), 1),
    **dict.fromkeys(COUNTS, 0),
    **dict.fromkeys(("cost_read_tokens", "cost_generated_tokens"), 1),
    **dict.fromkeys(("cost_prompt_passes", "cost_replay_passes", "unique_confidences"), 0),
}


def main(values: Values) -> Cells:
    layout, first = _Layout(values, "main"), values.study.in_distribution
    for dataset, ccg in ((first, first), ("ood6", "ood_ccg")):
        yield from layout.cells(dataset, ["accuracy"], once_an_actor=True)
        yield from layout.cells(dataset, ["auroc"])
        yield from layout.cells(ccg, ["natural_ccg_auc", "strict_ccg_auc"])


def cascade(values: Values) -> Cells:
    return _Layout(values, "cascade").cells(values.study.in_distribution, ["auroc", "brier", "natural_ccg_auc"])


def ood_acc(values: Values) -> Cells:
    layout = _Layout(values, "ood_acc")
    for dataset in layout.datasets:
        yield from layout.cells(dataset, ["accuracy", "auroc", "ece15", "brier"])


def base_models(values: Values) -> Cells:
    layout = _Layout(values, "base_models")
    for dataset in layout.datasets:
        yield from layout.cells(dataset, ["accuracy", "auroc", "ece15", "brier"])


def calib(values: Values) -> Cells:
    layout = _Layout(values, "calib")
    for dataset in [*(name for name in layout.datasets if name in values.study.ood), "ood6"]:
        yield from layout.cells(dataset, ["accuracy", "auroc", "ece15", "brier"])


def reliability(values: Values) -> Cells:
    layout = _Layout(values, "reliability")
    for dataset in layout.datasets:
        for subset in ("open", "closed"):
            yield from layout.cells(dataset, ["accuracy", "auroc", "ece15", "brier", "aurc", "hce90"], subset=subset)


def ccg_ood(values: Values) -> Cells:
    """Of a study without OOD data sets, the table shows the in-distribution one."""
    layout = _Layout(values, "ccg_ood")
    outside = [name for name in layout.datasets if name in values.study.ood]
    for dataset in outside or [values.study.in_distribution]:
        yield from layout.cells(dataset, ["natural_ccg_auc", "strict_ccg_auc"])


def ccg(values: Values) -> Cells:
    """The actor's columns stand once, under the first method; then each method, and the first minus every other."""
    layout, dataset = _Layout(values, "ccg"), values.study.in_distribution
    of_actor = ["accuracy_real", "accuracy_donor", "vrs", "decisive_pairs", "source_images", "donor_images", "vbr"]
    yield from layout.cells(dataset, of_actor, methods=layout.methods[:1])
    yield from layout.cells(dataset, ["natural_ccg_auc"])
    first, *others = layout.methods
    for backbone, seeds in layout.seeds.items():
        for other in others:
            own, its = (values.by_seed(backbone, m, dataset, "natural_ccg_auc") for m in (first, other))
            gaps = {seed: _minus(own[seed], its[seed]) for seed in seeds}
            short = layout.short(backbone, first, dataset, "natural_ccg_auc")
            key = {"backbone": backbone, "dataset": dataset, "method": f"{first}-{other}", "metric": "paired_delta"}
            yield Expected(**key, by_seed=gaps, short=short, signed=True)


def ccg_denom(values: Values) -> Cells:
    layout, dataset = _Layout(values, "ccg_denom"), values.study.in_distribution
    yield from layout.cells(dataset, ["decisive_pairs", "strict_decisive_pairs"])
    for backbone in layout.seeds:
        for method in layout.methods:
            pairs, strict = (layout.by_seed(backbone, method, dataset, f"{s}decisive_pairs") for s in ("", "strict_"))
            shares = {seed: 100 * strict[seed] / n if n else None for seed, n in pairs.items()}
            for metric, choose in (("retained_low_percent", min), ("retained_high_percent", max)):
                key = {"backbone": backbone, "dataset": dataset, "method": method, "metric": metric}
                yield Expected(**key, by_seed=shares, digits=0, summary=choose, spread=False)


def sc_tradeoff(values: Values) -> Cells:
    layout = _Layout(values, "sc_tradeoff")
    for dataset in layout.datasets:
        yield from layout.cells(dataset, ["auroc", "brier", "aurc"])


def channel(values: Values) -> Cells:
    layout = _Layout(values, "channel")
    for dataset in layout.datasets:
        yield from layout.cells(dataset, ["parse_rate"])
    yield from layout.cells(values.study.in_distribution, ["unique_confidences", "endpoint_share"])


def thresholds(values: Values) -> Cells:
    layout = _Layout(values, "thresholds")
    for percent in values.study.judged_by["target_risk_percent"]:
        for rule in ("", "certified_"):
            shares = [f"{rule}{kind}_at_risk_{percent}" for kind in ("coverage", "kept_risk")]
            yield from layout.cells(values.study.in_distribution, [f"{rule}threshold_at_risk_{percent}", *shares])
            yield from layout.cells("ood6", shares)


def branches(values: Values) -> Cells:
    layout = _Layout(values, "branches")
    for dataset in (values.study.in_distribution, "ood6"):
        yield from layout.cells(dataset, ["calibration_slope", "calibration_in_the_large"])


def by_family(values: Values) -> Cells:
    layout, dataset = _Layout(values, "by_family"), values.study.in_distribution
    for family in sorted(values.study.manifest(dataset)["content_family"].drop_nulls().unique()):
        yield from layout.cells(dataset, ["accuracy", "auroc", "ece15", "brier"], subset=f"family:{family}")


def families(values: Values) -> Cells:
    """Questions of each family in each data set, and what the paper counts in its draw of PathVQA."""
    counts = {}
    for dataset in _Layout(values, "families").datasets:
        found = values.study.manifest(dataset)["content_family"].drop_nulls().to_list()
        counts |= {(dataset, ""): found} if found else {}
    if ("path_vqa", "") in counts:
        counts["path_vqa", "paper"] = [name for name, n in _PATH_VQA.items() for _ in range(n)]
    for family in {name for found in counts.values() for name in found}:
        for (dataset, source), found in counts.items():
            key = {"backbone": "", "dataset": dataset, "method": source, "metric": "questions"}
            n = float(found.count(family)) or None
            yield Expected(**key, subset=f"family:{family}", by_seed={0: n}, digits=0, spread=False)


def costs(values: Values) -> Cells:
    layout, first = _Layout(values, "costs"), values.study.in_distribution
    counted = ["prompt_passes", "replay_passes", "read_tokens", "generated_tokens"]
    yield from layout.cells(first, [f"cost_{name}" for name in counted])
    for dataset in layout.datasets:
        yield from layout.cells(dataset, ["auroc", "brier", "aurc"])


def controls(values: Values) -> Cells:
    layout = _Layout(values, "controls")
    for dataset in layout.datasets:
        yield from layout.cells(dataset, [name for name in list(CCG)[1:] if "both" not in name])
        yield from layout.cells(dataset, ["shuffled_auroc"])
        yield from layout.cells(dataset, ["shuffled_accuracy", "shuffled_accuracy_drop"], once_an_actor=True)


def claims(values: Values) -> Cells:
    layout = _Layout(values, "claims")
    kinds = [f"filter_{loss}_{kind}" for kind in ("kept", "unsupported", "none_kept") for loss in ("share", "any")]
    percents = values.study.judged_by["target_risk_percent"]
    for dataset in layout.datasets:
        yield from layout.cells(dataset, [*COUNTS, "accuracy"], once_an_actor=True)
        yield from layout.cells(dataset, ["auroc", "brier", "fixed_prefix_ccg_auc", "supported_on_both_ccg_auc"])
        yield from layout.cells(dataset, [f"{kind}_at_risk_{percent}" for kind in kinds for percent in percents])


def training_signals(values: Values) -> Cells:
    layout, dataset = _Layout(values, "training_signals"), values.study.in_distribution
    yield from layout.cells(dataset, ["accuracy", "answers_changed"], once_an_actor=True)
    of_method = ["auroc", "ece15", "brier", "unique_confidences", "confidence_entropy"]
    yield from layout.cells(dataset, [*of_method, "natural_ccg_auc", "strict_ccg_auc"])


TABLES: dict[str, Callable[[Values], Cells]] = {
    function.__name__: function
    for function in (
        *(main, cascade, ood_acc, calib, reliability, ccg_ood, ccg, ccg_denom),
        *(sc_tradeoff, channel, thresholds, branches, by_family, families, costs, controls, base_models),
        *(claims, training_signals),
    )
}


class _Layout:
    """What a table says that it shows, and the cells of its columns."""

    def __init__(self, values: Values, table: str) -> None:
        layout: dict[str, Any] = values.study.layout(table)
        self._values = values
        self._entries = layout["methods"]
        self.seeds = {entry["name"]: entry["seeds"] for entry in layout["backbones"]}
        self.methods = [entry["name"] for entry in self._entries]
        self.datasets = [entry["name"] for entry in layout["datasets"]]
        self._competing = [entry["name"] for entry in self._entries if entry["group"] != "Null"]

    def cells(
        self,
        dataset: str,
        metrics: Sequence[str],
        *,
        subset: str = "all",
        methods: Sequence[str] | None = None,
        once_an_actor: bool = False,
    ) -> Cells:
        """Return the cells of some columns; where methods that follow each other share an actor, maybe one for all."""
        shown = self.methods if methods is None else methods
        if once_an_actor:
            actors = [entry["actor"] for entry in self._entries]
            shown = [name for k, name in enumerate(shown) if k == 0 or actors[k] != actors[k - 1]]
        for backbone in self.seeds:
            for method in shown:
                for metric in metrics:
                    yield Expected(
                        backbone=backbone,
                        dataset=dataset,
                        subset=subset,
                        method=method,
                        metric=metric,
                        by_seed=self.by_seed(backbone, method, dataset, metric, subset),
                        short=self.short(backbone, method, dataset, metric),
                        by_chance=metric == "ece15" and self.by_chance(backbone, method, dataset, subset),
                        digits=3 if self._values.study.of_claims and "passes" in metric else _DIGITS.get(metric, 3),
                        best_of=self._competing,
                    )

    def by_seed(
        self, backbone: str, method: str, dataset: str, metric: str, subset: str = "all"
    ) -> dict[int, float | None]:
        """Return the values of the seeds that the table shows; an actor without seeds has one run, 0."""
        found = self._values.by_seed(backbone, method, dataset, metric, subset)
        return found if set(found) == {0} else {seed: found[seed] for seed in self.seeds[backbone]}

    def by_chance(self, backbone: str, method: str, dataset: str, subset: str) -> bool:
        """Return whether no run's ECE is above its noise floor, which `floors` judges; a mean has no floor."""
        seeds = self.by_seed(backbone, method, dataset, "ece15", subset)
        floors = self._values.study.floors(backbone, method, dataset, subset)
        pairs = [(error, floors.get(seed)) for seed, error in seeds.items()]
        return all(error is not None and floor is not None and error <= floor + 1e-9 for error, floor in pairs)

    def short(self, backbone: str, method: str, dataset: str, metric: str) -> set[str]:
        runs = self._values.study.runs[backbone, method].values()
        return set().union(*(self._values.short(run, dataset, metric) for run in runs))


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
