import polars as pl
import pytest

from dualread.artifacts.tables import from_rows
from dualread.evaluation.aggregates import RATES, aggregate
from dualread.evaluation.pair_metrics import PAIR_METRICS
from dualread.schema.columns import METRICS

RUN = {"study": "s", "backbone": "tiny", "actor": "rlvr", "seed": 17, "split": "test", "subset": "all", "method": "psr"}


def row(dataset, metric, estimate, n=10, reason=None, **changes):
    return {**RUN, "dataset": dataset, "metric": metric, "estimate": estimate, "low": None, "high": None, "n": n,
            "n_clusters": n // 2, "reason": reason, **changes}  # fmt: skip


def find(frame, dataset, metric, **key):
    for name, value in {"dataset": dataset, "metric": metric, "subset": "all", **key}.items():
        frame = frame.filter(pl.col(name) == value)
    assert len(frame) == 1
    return frame.row(0, named=True)


def test_domains_weigh_the_same_whatever_their_size():
    metrics = from_rows([row("a", "auroc", 0.5, n=10), row("b", "auroc", 0.75, n=1000)], METRICS)
    found = find(aggregate(metrics, ood=["a", "b"], ood_ccg=[]), "ood6", "auroc")
    assert (found["estimate"], found["n"], found["n_clusters"], found["reason"]) == (0.625, 1010, 505, None)


def test_a_mean_is_never_partial():
    metrics = from_rows(
        [row("a", "auroc", 0.5), row("b", "auroc", None, reason="one class only"), row("a", "brier", 0.1)], METRICS
    )
    found = aggregate(metrics, ood=["a", "b"], ood_ccg=["a"])
    assert find(found, "ood6", "auroc")["reason"] == "b: one class only"
    assert find(found, "ood6", "auroc")["estimate"] is None
    assert find(found, "ood6", "brier")["reason"] == "b: missing"


def test_ood_ccg_has_its_own_members_and_its_share_of_underpowered_ones():
    metrics = from_rows(
        [row(d, "natural_ccg_auc", v) for d, v in (("a", 0.5), ("b", 0.7), ("c", 0.9))]
        + [row(d, "natural_few_donors", v) for d, v in (("a", 0.0), ("b", 1.0))],
        METRICS,
    )
    found = aggregate(metrics, ood=["a", "b", "c"], ood_ccg=["a", "b"])
    assert find(found, "ood_ccg", "natural_ccg_auc")["estimate"] == pytest.approx(0.6)
    assert find(found, "ood_ccg", "natural_few_donors")["estimate"] == 0.5
    assert found.filter((pl.col("dataset") == "ood6") & (pl.col("metric") == "natural_ccg_auc")).is_empty()


def test_a_study_without_ood_data_sets_says_so():
    metrics = from_rows([row("slake", "auroc", 0.5)], METRICS)
    for name, metric in (("ood6", "auroc"), ("ood_ccg", "strict_ccg_auc")):
        found = find(aggregate(metrics, ood=[], ood_ccg=[]), name, metric)
        assert (found["estimate"], found["reason"], found["n"]) == (None, "the study has no OOD data sets", 0)


def test_a_count_has_no_mean_over_domains_and_a_share_has_one():
    metrics = from_rows([row("a", name, 0.5) for name in ("unique_confidences", "endpoint_share")], METRICS)
    found = aggregate(metrics, ood=["a"], ood_ccg=[])
    assert found.filter(metric="unique_confidences").is_empty()
    assert find(found, "ood6", "endpoint_share")["estimate"] == 0.5


def test_every_rate_of_donor_pairs_has_a_mean_over_domains_and_no_count_has():
    metrics = from_rows([row("a", name, 1.0) for name in PAIR_METRICS], METRICS)
    found = aggregate(metrics, ood=[], ood_ccg=["a"]).filter(dataset="ood_ccg", subset="all")
    assert set(found["metric"]) == set(RATES["ood_ccg"])
    assert {"accuracy_real", "accuracy_donor", "vrs"} <= set(
        RATES["ood_ccg"]
    )  # the third is the first minus the second
    assert not {"decisive_pairs", "strict_donor_images"} & set(RATES["ood_ccg"])


def test_a_metric_that_a_study_asks_for_besides_has_a_mean_where_it_is_computed():
    metrics = from_rows([row("a", "e_aurc", 0.5), row("b", "e_aurc", 0.25)], METRICS)
    found = aggregate(metrics, ood=["a", "b"], ood_ccg=[])
    assert find(found, "ood6", "e_aurc")["estimate"] == 0.375
    assert "auarc" not in set(found["metric"])


def test_seeds_and_methods_stay_apart():
    metrics = from_rows(
        [row("a", "auroc", v, seed=s, method=m) for v, s, m in ((0.5, 17, "psr"), (0.6, 29, "psr"), (0.7, 17, "per"))],
        METRICS,
    )
    found = aggregate(metrics, ood=["a"], ood_ccg=[])
    assert find(found, "ood6", "auroc", seed=29, method="psr")["estimate"] == 0.6
    assert find(found, "ood6", "auroc", seed=17, method="per")["estimate"] == 0.7
