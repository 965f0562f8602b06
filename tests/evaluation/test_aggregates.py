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


def means(*rows, ood=(), ood_ccg=()):
    return aggregate(from_rows(list(rows), METRICS), ood=list(ood), ood_ccg=list(ood_ccg))


def test_domains_weigh_the_same_whatever_their_size():
    found = find(means(row("a", "auroc", 0.5, n=10), row("b", "auroc", 0.75, n=1000), ood="ab"), "ood6", "auroc")
    assert (found["estimate"], found["n"], found["n_clusters"], found["reason"]) == (0.625, 1010, 505, None)


def test_a_mean_is_never_partial():
    rows = row("a", "auroc", 0.5), row("b", "auroc", None, reason="one class only"), row("a", "brier", 0.1)
    found = means(*rows, ood="ab", ood_ccg="a")
    assert find(found, "ood6", "auroc")["reason"] == "b: one class only"
    assert find(found, "ood6", "auroc")["estimate"] is None
    assert find(found, "ood6", "brier")["reason"] == "b: missing"


def test_ood_ccg_has_its_own_members_and_its_share_of_underpowered_ones():
    rows = [row(d, "natural_ccg_auc", v) for d, v in (("a", 0.5), ("b", 0.7), ("c", 0.9))]
    rows += [row(d, "natural_few_donors", v) for d, v in (("a", 0.0), ("b", 1.0))]
    found = means(*rows, ood="abc", ood_ccg="ab")
    assert find(found, "ood_ccg", "natural_ccg_auc")["estimate"] == pytest.approx(0.6)
    assert find(found, "ood_ccg", "natural_few_donors")["estimate"] == 0.5
    assert found.filter((pl.col("dataset") == "ood6") & (pl.col("metric") == "natural_ccg_auc")).is_empty()


def test_a_study_without_ood_data_sets_says_so():
    for name, metric in (("ood6", "auroc"), ("ood_ccg", "strict_ccg_auc")):
        found = find(means(row("slake", "auroc", 0.5)), name, metric)
        assert (found["estimate"], found["reason"], found["n"]) == (None, "the study has no OOD data sets", 0)


def test_rates_have_a_mean_over_domains_and_counts_have_none():
    found = means(*(row("a", name, 0.5) for name in ("unique_confidences", "endpoint_share")), ood="a")
    assert found.filter(metric="unique_confidences").is_empty()
    assert find(found, "ood6", "endpoint_share")["estimate"] == 0.5
    of_pairs = means(*(row("a", name, 1.0) for name in PAIR_METRICS), ood_ccg="a")
    assert set(of_pairs.filter(dataset="ood_ccg", subset="all")["metric"]) == set(RATES["ood_ccg"])
    # The third is the first minus the second.
    assert {"accuracy_real", "accuracy_donor", "vrs"} <= set(RATES["ood_ccg"])
    assert not {"decisive_pairs", "strict_donor_images"} & set(RATES["ood_ccg"])


def test_a_metric_that_a_study_asks_for_besides_has_a_mean_where_it_is_computed():
    found = means(row("a", "e_aurc", 0.5), row("b", "e_aurc", 0.25), ood="ab")
    assert find(found, "ood6", "e_aurc")["estimate"] == 0.375
    assert "auarc" not in set(found["metric"])


def test_seeds_and_methods_stay_apart():
    values = ((0.5, 17, "psr"), (0.6, 29, "psr"), (0.7, 17, "per"))
    found = means(*(row("a", "auroc", v, seed=s, method=m) for v, s, m in values), ood="a")
    assert find(found, "ood6", "auroc", seed=29, method="psr")["estimate"] == 0.6
    assert find(found, "ood6", "auroc", seed=17, method="per")["estimate"] == 0.7
