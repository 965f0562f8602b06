"""The value of every metric of every run, and of the means over data sets: from rows, whenever it is asked for."""

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import polars as pl

from tests.workflow.recount import definitions, reports
from tests.workflow.recount.passes import passes_and_tokens
from tests.workflow.recount.study import Run, Study

# Which image stands beside the own one, and whether the answer has to be the same on both.
CCG = {
    "natural_ccg_auc": ("donor", "donor", False),
    "strict_ccg_auc": ("donor", "donor", True),
    "fixed_prefix_ccg_auc": ("fixed", "fixed", False),
    "strict_same_answer_ccg_auc": ("fixed", "donor", True),  # confidence under the first, labels under the second
    "shuffled_ccg_auc": ("shuffled", "shuffled", False),
    "supported_on_both_ccg_auc": ("fixed", "fixed", False),  # of claims that are right on the other image as well
}
FEWEST_IMAGES = 30


@dataclass(frozen=True, kw_only=True)
class Decisive:
    """Pairs with the confidence on either image, and which of them are decisive; claims of one report have one name."""

    names: np.ndarray
    real: np.ndarray
    other: np.ndarray
    chosen: np.ndarray
    sources: np.ndarray
    others: np.ndarray

    @property
    def short(self) -> set[str]:
        """The sides with too few images."""
        sides = {"source": self.sources, "donor": self.others}
        return {name for name, images in sides.items() if len(set(images[self.chosen])) < FEWEST_IMAGES}

    @property
    def phi(self) -> np.ndarray:
        """1 for more confidence on the own image, 1/2 for a tie, 0 for less."""
        return (self.real > self.other) + 0.5 * (self.real == self.other)


@dataclass(kw_only=True)
class Values:
    """The values of a study; what was asked for once is kept."""

    study: Study
    _known: dict = field(default_factory=dict)

    def by_seed(
        self, backbone: str, method: str, dataset: str, metric: str, subset: str = "all", split: str = "test"
    ) -> dict[int, float | None]:
        """Return the value of every run of a method, None where it has none."""
        runs = self.study.runs[backbone, method].values()
        return {run.seed: self.of_run(run, dataset, metric, subset, split) for run in runs}

    def of_run(self, run: Run, dataset: str, metric: str, subset: str = "all", split: str = "test") -> float | None:
        key = (run, dataset, metric, subset, split)
        if key not in self._known:
            members = {"ood6": self.study.ood, "ood_ccg": self.study.paired}.get(dataset)
            if members is None:
                self._known[key] = self._of_dataset(run, dataset, metric, subset, split)
            else:
                values = [self.of_run(run, member, metric, subset, split) for member in members]
                self._known[key] = None if None in values or not values else sum(values) / len(values)
        return self._known[key]

    def short(self, run: Run, dataset: str, metric: str, split: str = "test") -> set[str]:
        """Return the sides of which CCG has too few images: here, or in any member of a mean."""
        if metric not in CCG:
            return set()
        if dataset == "ood_ccg":
            return set().union(*(self.short(run, member, metric, split) for member in self.study.paired))
        found = self.decisive(run, dataset, metric, split=split)
        return set() if found is None else found.short

    def decisive(
        self, run: Run, dataset: str, metric: str, subset: str = "all", split: str = "test"
    ) -> Decisive | None:
        """Return the pairs of a CCG metric; None where the study has none."""
        key = ("decisive", run, dataset, metric, subset, split)
        if key not in self._known:
            self._known[key] = self._decisive(run, dataset, metric, subset, split)
        return self._known[key]

    def _decisive(self, run: Run, dataset: str, metric: str, subset: str, split: str) -> Decisive | None:
        confident_beside, labelled_beside, same_answer = CCG[metric]
        if self.study.pairs(dataset, split) is None and "shuffled" not in confident_beside:
            return None
        rows = self._beside(run, dataset, split, confident_beside, subset)
        labels = self._beside(run, dataset, split, labelled_beside, subset)
        if rows.is_empty() or labels.is_empty():  # nothing is forced, or no report is written on the donor's image
            return None
        chosen = []
        for row in labels.iter_rows(named=True):
            same = row["canonical_answer"] and row["canonical_answer"] == row["canonical_answer_other"]
            as_meant = row["correct_other"] == metric.startswith("supported_on_both")
            chosen.append(bool(row["correct"] and as_meant and (same or not same_answer)))
        sources, others = rows["cluster"].to_numpy(), rows["cluster_other"].to_numpy()
        return Decisive(
            names=rows["sample_id"].str.replace(r"#\d+$", "").to_numpy(),
            real=rows["confidence"].to_numpy(),
            other=rows["confidence_other"].to_numpy(),
            chosen=np.array(chosen, dtype=bool),
            sources=sources,
            others=np.where(others == sources, -1 - sources, others),  # where one image of several is exchanged
        )

    def _of_dataset(self, run: Run, dataset: str, metric: str, subset: str, split: str) -> float | None:
        if metric.startswith("cost_"):
            return passes_and_tokens(self.study, run)[metric]
        if metric in CCG:
            found = self.decisive(run, dataset, metric, subset, split)
            return None if found is None else definitions.ccg_auc(found.real, found.other, found.chosen)
        if metric.startswith("shuffled_"):
            return self._shuffled(run, dataset, split, metric)
        if metric in PAIRED:
            return self._of_pairs(run, dataset, split, metric)
        if metric == "squared_calibration_error":
            return definitions.squared_error(self.study.answers(run, dataset, split, subset))
        if metric in reports.COUNTS:
            questions = self.study.manifest(dataset, split)["sample_id"].to_list()
            return float(reports.COUNTS[metric](questions, self.study.claims(run, dataset, split, "original")))
        if re.fullmatch(reports.METRICS, metric):
            chosen_on = self.study.answers(run, self.study.in_distribution, "validation", "all")
            return reports.of_metric(metric, chosen_on, self.study.answers(run, dataset, split, "all"))
        if metric == "answers_changed":
            return self._changed(run, dataset, split)
        if "_at_risk_" in metric:
            return self._above_threshold(run, dataset, split, *metric.split("_at_risk_"))
        answers = self.study.answers(run, dataset, split, subset)
        if metric in CHANNEL:
            return CHANNEL[metric](answers)
        confidence, correct = answers["confidence"].to_numpy(), answers["correct"].to_numpy()
        if metric == "within_question_auroc":
            return definitions.within_question_auroc(confidence, correct, answers["question_key"].to_list())
        return definitions.OF_ANSWERS[metric](confidence, correct)

    def _of_pairs(self, run: Run, dataset: str, split: str, metric: str) -> float | None:
        natural = self.decisive(run, dataset, "natural_ccg_auc", split=split)
        if natural is None:
            return None
        strict = self.decisive(run, dataset, "strict_ccg_auc", split=split)
        rows = self._beside(run, dataset, split, "donor")
        assert strict is not None
        return PAIRED[metric](rows["correct"].to_list(), rows["correct_other"].to_list(), natural, strict)

    def _shuffled(self, run: Run, dataset: str, split: str, metric: str) -> float | None:
        rows = self._beside(run, dataset, split, "shuffled")
        if rows.is_empty():
            return None
        own, shuffled = rows["correct"].to_numpy(), rows["correct_other"].to_numpy()
        if metric == "shuffled_auroc":
            return definitions.auroc(rows["confidence_other"].to_numpy(), shuffled)
        rate = definitions.accuracy(shuffled, shuffled)
        return rate if metric == "shuffled_accuracy" else definitions.accuracy(own, own) - rate

    def _changed(self, run: Run, dataset: str, split: str) -> float:
        """Return the share of answers that differ from those of the actor that the study compares with."""
        other = replace(run, actor=self.study.judged_by["changed_from"])
        said = [
            dict(self.study.graded(of, dataset, split, "original").select("sample_id", "canonical_answer").iter_rows())
            for of in (run, other)
        ]
        return sum(said[0][name] != said[1][name] for name in said[0]) / len(said[0])

    def _above_threshold(self, run: Run, dataset: str, split: str, kind: str, percent: str) -> float | None:
        """Return what the smallest confidence that is good enough on validation leads to."""
        chosen_on = self.study.answers(run, self.study.in_distribution, "validation", "all")
        if kind.startswith("certified_"):
            columns = (tuple(chosen_on[name]) for name in ("confidence", "correct", "cluster"))
            good = definitions.certified(*columns, Fraction(int(percent), 100))
        else:
            good = [
                least
                for least in set(chosen_on["confidence"])
                if 100 * _wrong(chosen_on, least) <= int(percent) * len(_at_least(chosen_on, least))
            ]
        if not good:
            return None
        answers, kind = self.study.answers(run, dataset, split, "all"), kind.removeprefix("certified_")
        kept = len(_at_least(answers, min(good)))
        shares = {"threshold": min(good), "coverage": kept / len(answers)}
        return shares[kind] if kind in shares else (_wrong(answers, min(good)) / kept if kept else None)

    def _beside(self, run: Run, dataset: str, split: str, other: str, subset: str = "all") -> pl.DataFrame:
        key = (run, dataset, split, other, subset)
        if key not in self._known:
            found = self.study.beside(run, dataset, split, other)
            if not found.is_empty():
                types = self.study.answers(run, dataset, split, "all").select("sample_id", "answer_type")
                found = found.join(types, on="sample_id").sort("sample_id")
                found = found if subset == "all" else found.filter(answer_type=subset)
            self._known[key] = found
        return self._known[key]


def _at_least(answers: pl.DataFrame, least: float) -> list[bool]:
    columns = answers["confidence"].to_list(), answers["correct"].to_list()
    return [correct for c, correct in zip(*columns, strict=True) if c >= least]


def _wrong(answers: pl.DataFrame, least: float) -> int:
    return _at_least(answers, least).count(False)


def _parse_rate(answers: pl.DataFrame) -> float:
    return 1 - sum(answers["imputed"]) / len(answers)


def _unique(answers: pl.DataFrame) -> float | None:
    valid = answers.filter(~pl.col("imputed"))["confidence"].to_list()
    return float(len(set(valid))) if valid else None


def _endpoints(answers: pl.DataFrame) -> float | None:
    valid = answers.filter(~pl.col("imputed"))["confidence"].to_list()
    return sum(c in (0.0, 1.0) for c in valid) / len(valid) if valid else None


CHANNEL = {
    "parse_rate": _parse_rate,
    "unique_confidences": _unique,
    "endpoint_share": _endpoints,
    "confidence_entropy": definitions.confidence_entropy,
}

# Of the labels on both images, the decisive set and the strict one.
PAIRED = {
    "accuracy_real": lambda real, donor, natural, strict: sum(real) / len(real),
    "accuracy_donor": lambda real, donor, natural, strict: sum(donor) / len(donor),
    "vrs": lambda real, donor, natural, strict: sum(map(int, real)) / len(real) - sum(map(int, donor)) / len(donor),
    "vbr": lambda real, donor, natural, strict: sum(natural.chosen) / len(real),
    "decisive_pairs": lambda real, donor, natural, strict: float(sum(natural.chosen)),
    "strict_decisive_pairs": lambda real, donor, natural, strict: float(sum(strict.chosen)),
    "source_images": lambda real, donor, natural, strict: float(len(set(natural.sources[natural.chosen]))),
    "donor_images": lambda real, donor, natural, strict: float(len(set(natural.others[natural.chosen]))),
}
