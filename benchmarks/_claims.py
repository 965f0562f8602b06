"""Claims of reports: how often a certified filter is wrong, and intervals over claims hold (`coverage.py`)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit

import dualread
from dualread.apps.text import aligned
from dualread.errors import UndefinedMetricError
from dualread.evaluation.claim_filter import LOSSES, RATES, LabeledClaims, certified_filter, filter_rates, report_losses
from dualread.evaluation.columns import Columns
from dualread.evaluation.controls import OF_FORCED_CLAIMS, report_pairs
from dualread.evaluation.metrics._bets import running_sums_by
from dualread.evaluation.pair_metrics import PairValues
from dualread.evaluation.samples import mean_sample

DELTA, MANY, REPLICATES = 0.1, 40_000, 400
METRICS = ("accuracy", "auroc", "brier", "aurc", "hce90")


class Source(NamedTuple):
    """Patients with reports of claims; whether a claim is supported depends on its confidence, report and patient."""

    patients: int
    most_reports: int
    most_claims: int
    wrong: float  # on the logit, at a confidence of .75
    slope: float  # of the confidence; negative where the most confident claims are wrong
    of_patient: float
    of_report: float
    ties: int  # number of distinct confidences

    @classmethod
    def random(cls, rng: np.random.Generator) -> "Source":
        """Return one of the many designs."""
        sizes = (int(rng.choice(choices)) for choices in ((40, 80, 160), (1, 2, 5), (3, 12, 30)))
        shape = (rng.uniform(*ends) for ends in ((-3, 0), (-6, 12), (0, 3), (0, 2)))
        (patients, reports, claims), (wrong, slope, of_patient, of_report) = sizes, shape
        ties = int(rng.choice((4, 20, 10_000)))
        return cls(patients, reports, claims, wrong, slope, of_patient, of_report, ties)

    def draw(self, rng: np.random.Generator, patients: int | None = None) -> LabeledClaims:
        """Return the claims of as many patients; those with many reports, and long reports, are wrong more often."""
        n = patients or self.patients
        n_reports = rng.integers(1, self.most_reports + 1, n)
        cluster = np.repeat(np.arange(n), n_reports)
        n_claims = rng.integers(1, self.most_claims + 1, len(cluster))
        luck = self.of_patient * rng.standard_normal(n)[cluster] + self.of_report * rng.standard_normal(len(cluster))
        luck += 0.3 * (n_reports[cluster] > 2) + 0.3 * (n_claims > 6)
        report = np.repeat(np.arange(len(cluster)), n_claims)
        confidence = np.ceil(self.ties * rng.beta(3, 1, len(report))) / self.ties
        wrong = rng.random(len(report)) < expit(self.wrong - self.slope * (confidence - 0.75) + luck[report])
        return LabeledClaims(confidence, ~wrong, report, cluster[report])


def risks(many: LabeledClaims, loss: str) -> Callable[[float], tuple[float, float]]:
    """Return a function that returns the risk of a threshold, and the share of claims that it keeps."""
    order = np.argsort(-many.confidence, kind="stable")
    wrong, levels = (~many.correct[order]).astype(np.int64), -many.confidence[order]
    n_kept, n_wrong = running_sums_by(many.report[order], np.stack([np.ones_like(wrong), wrong]))
    change = LOSSES[loss](n_kept, n_wrong) - LOSSES[loss](n_kept - 1, n_wrong - wrong)
    risk = np.append(0.0, np.cumsum(change) / many.n_reports)
    assert np.isclose(risk[-1], report_losses(many, loss, threshold=0.0).mean())

    def of_threshold(cut: float) -> tuple[float, float]:
        n = int(np.searchsorted(levels, -cut, side="right"))
        return float(risk[n]), n / len(levels)

    return of_threshold


def claim_filter_lines(n_sets: int, n_designs: int = 200) -> Iterator[str]:
    """Yield how often the risk of certified filters is above the target, over random designs.

    The target is that of a threshold at which between 5% and all of the claims are kept, so that a filter just below it
    is wrong. "claims as if independent" gives every claim a report, and "reports as if independent" a patient.
    """
    above: dict[tuple[str, str], list[float]] = defaultdict(list)
    kept: dict[tuple[str, str], list[float]] = defaultdict(list)
    for k in range(n_designs):
        rng = np.random.default_rng([11, k])
        source = Source.random(rng)
        many = source.draw(rng, MANY)
        levels = np.unique(many.confidence)
        limit = np.quantile(many.confidence, rng.uniform(0, 0.95))
        known = float(levels[np.searchsorted(levels, limit)])
        for loss in LOSSES:
            of_threshold = risks(many, loss)
            target = min(max(of_threshold(known)[0] * 0.999, 0.02), 0.6)
            shares: dict[str, list[tuple[bool, float]]] = defaultdict(list)
            for _ in range(n_sets):
                drawn = source.draw(rng)
                one = np.arange(len(drawn.report))
                samples = {
                    "printed": (drawn, source.most_reports),
                    "reports as if independent": (drawn._replace(cluster=drawn.report), 1),
                    "claims as if independent": (drawn._replace(report=one, cluster=one), 1),
                }
                for rule, (sample, most) in samples.items():
                    try:
                        cut = certified_filter(sample, loss, target_risk=target, delta=DELTA, max_reports=most)
                    except UndefinedMetricError:
                        shares[rule].append((False, 0.0))
                    else:
                        risk, share = of_threshold(cut)
                        shares[rule].append((risk > target, share))
            for rule, values in shares.items():
                wrong, share = np.mean(values, axis=0)
                above[loss, rule].append(wrong)
                kept[loss, rule].append(share)
    table = [("loss", "rule", "above the target, mean", "largest of designs", "designs above .1", "kept, mean")]
    for key, values in above.items():
        numbers = (f"{np.mean(values):.4f}", f"{np.max(values):.3f}", str(int(np.sum(np.array(values) > DELTA))))
        table.append((*key, *numbers, f"{np.mean(kept[key]):.3f}"))
    yield from aligned(table, numbers=(2, 3, 4, 5))


def claim_interval_lines(n_sets: int) -> Iterator[str]:
    """Yield how often intervals over claims hold the value of 40,000 patients, by what is resampled."""
    designs = {
        "reports alone": Source(150, 1, 12, -1.0, 4.0, 0.0, 1.0, 10_000),
        "1 to 5 reports": Source(100, 5, 12, -1.0, 4.0, 1.0, 1.0, 10_000),
        "long reports, ties": Source(100, 2, 30, -0.5, 4.0, 1.5, 1.0, 20),
        "50 patients": Source(50, 3, 12, -1.0, 4.0, 1.0, 1.0, 10_000),
    }
    table = [("design", "number", "interval over", "coverage", "se", "", "width")]
    for k, (name, source) in enumerate(designs.items()):
        rng = np.random.default_rng([12, k])
        truth = _numbers(source.draw(rng, MANY), "patient", 0)
        ends: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        for _ in range(n_sets):
            drawn = source.draw(rng)
            for over in ("patient", "claim"):
                for number, (_, low, high) in _numbers(drawn, over, REPLICATES).items():
                    ends[number, over].append((low, high))
        for (number, over), values in ends.items():
            low, high = np.array([end for end in values if None not in end], dtype=np.float64).reshape(-1, 2).T
            if len(low) == 0:
                continue
            covers = (low <= truth[number][0]) & (truth[number][0] <= high)
            share = covers.mean()
            mark = "" if 0.92 <= share <= 0.98 else "*"
            error = np.sqrt(max(share * (1 - share), 1 / len(covers)) / len(covers))
            table.append((name, number, over, f"{share:.3f}", f"{error:.3f}", mark, f"{np.mean(high - low):.3f}"))
    yield from aligned(table, numbers=(3, 4, 6))


def _numbers(claims: LabeledClaims, over: str, replicates: int) -> dict[str, tuple]:
    """Return (estimate, low, high) of metrics of all claims, and of what a filter at .9 keeps."""
    table = {name: getattr(claims, name) for name in ("confidence", "correct")}
    table |= {"report": claims.report, "claim": np.arange(len(claims.report)), "patient": claims.cluster}
    if over == "claim":  # as if every claim were a report
        table |= {"report": table["claim"], "patient": table["claim"]}
    evaluation = dualread.evaluate(table, cluster="patient", replicates=replicates)
    metrics = evaluation.metrics.filter(subset="all").select("metric", "estimate", "low", "high")
    numbers = {metric: (value, low, high) for metric, value, low, high in metrics.rows() if metric in METRICS}
    if over == "patient":
        for loss in LOSSES:
            rates = filter_rates(claims, loss, threshold=0.9)
            for name in RATES if loss == "share" else ("risk",):
                numbers[f"{name}, {loss}, at .9"] = (rates[name], rates[f"{name}_low"], rates[f"{name}_high"])
    return numbers


class Forced(NamedTuple):
    """Reports that are forced on the images of other patients; an image decides together about all claims on it."""

    patients: int
    most_reports: int
    most_claims: int
    of_image: float  # how much of a method's confidence the image decides
    fall: float  # of confidence, where the donor does not support a claim

    def draw(self, rng: np.random.Generator, methods: Iterable[str], n: int) -> dict:
        """Return the forced claims of each method, and their pairs.

        Methods whose names have another first letter judge other reports about the same images.
        """
        patient = np.repeat(np.arange(n), rng.integers(1, self.most_reports + 1, n))
        images = patient, (patient + rng.integers(1, n, len(patient))) % n
        names = {f"{side}_cluster_id": of.astype(str) for side, of in zip(("source", "donor"), images, strict=True)}
        asked = pl.DataFrame({"sample_id": np.arange(len(patient)).astype(str), **names})
        reports, drawn = {}, {}
        for method in methods:
            if method[0] not in reports:
                report = np.repeat(np.arange(len(patient)), rng.integers(0, self.most_claims + 1, len(patient)))
                luck = rng.standard_normal((2, n))
                right = [rng.random(len(report)) < expit(luck[k][images[k][report]]) for k in (0, 1)]
                reports[method[0]] = report, *right
            report, right, right_on_donor = reports[method[0]]
            of_image = self.of_image * rng.standard_normal(n)
            own, other = (of_image[at[report]] + rng.standard_normal(len(report)) for at in images)
            own += self.fall * (right > right_on_donor)
            columns = {"confidence_real": expit(own), "confidence_fixed": expit(other)}
            claims = asked[report].with_columns(**columns, correct_real=right, correct_fixed=right_on_donor)
            drawn[method] = (of := Columns.of(claims)), report_pairs(of, claims["sample_id"], asked)
        return drawn


FORCED = {
    "80 images, up to 6 claims": Forced(80, 1, 6, 0.0, 0.5),
    "80 images that decide": Forced(80, 1, 6, 1.5, 0.5),
    "40 images": Forced(40, 1, 6, 1.0, 1.0),
    "100 patients, up to 4 reports": Forced(100, 4, 8, 1.0, 0.3),
    "200 images, up to 15 claims": Forced(200, 1, 15, 1.0, 2.0),
}


def forced_claim_lines(n_sets: int) -> Iterator[str]:
    """Yield how often intervals of Forced CCG-AUC hold the value of 20,000 patients, and equal methods differ.

    The second method judges the same claims, and the third those of another actor. "as if independent" gives every
    claim images of its own.
    """
    table = [("design", "metric", "how", "coverage", "se", "width", "p <= .05: same claims", "other actor", "se")]
    for k, (name, source) in enumerate(FORCED.items()):
        rng = np.random.default_rng([13, k])
        many = source.draw(rng, ("a1",), MANY // 2)["a1"][0]
        truth = {metric.name: metric.value(many) for metric in OF_FORCED_CLAIMS}
        found: dict[tuple[str, str], list[tuple]] = defaultdict(list)
        for _ in range(n_sets):
            drawn = source.draw(rng, ("a1", "a2", "b1"), source.patients)
            for metric in OF_FORCED_CLAIMS:
                of_pairs = metric.of_pairs
                assert of_pairs is not None, "both are means over pairs"
                values = {method: of_pairs.values(columns) for method, (columns, _) in drawn.items()}
                means = {method: float(np.nanmean(of_method)) for method, of_method in values.items()}
                ways = {"printed": {method: pairs[metric.name] for method, (_, pairs) in drawn.items()}}
                rows = np.arange(len(values["a1"]))
                alone = {
                    method: PairValues(values=values[method], source=rows, donor=rows + len(rows))
                    for method in ("a1", "a2")
                }
                for how, pairs in {**ways, "as if independent": alone}.items():
                    samples = {method: mean_sample([[of_method]], n_images=0) for method, of_method in pairs.items()}
                    low, high = samples["a1"].limits(means["a1"], False) or (np.nan, np.nan)
                    p = {m: samples["a1"].minus(other).p(means["a1"] - means[m]) for m, other in samples.items()}
                    tests = [np.nan if (value := p.get(m)) is None else value.value <= 0.05 for m in ("a2", "b1")]
                    covers = low <= truth[metric.name] <= high
                    found[metric.name, how].append((covers, high - low, *tests))
        for key, rows in found.items():
            covers, width, same, other = np.mean(np.array(rows, dtype=np.float64), axis=0)
            errors = [f"{np.sqrt(share * (1 - share) / n_sets):.3f}" for share in (covers, same)]
            shares = (
                f"{covers:.3f}",
                errors[0],
                f"{width:.3f}",
                f"{same:.3f}",
                f"{other:.3f}".replace("nan", "-"),
                errors[1],
            )
            table.append((name, *key, *shares))
    yield from aligned(table, numbers=(3, 4, 5, 6, 7, 8))
