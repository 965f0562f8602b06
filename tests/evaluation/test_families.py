import polars as pl

from dualread.evaluation.conditions import family_rows
from dualread.evaluation.statistics.bootstrap import ClusterDraws

DRAWS = ClusterDraws(names=("study", "slake", "test"), cluster_ids=("i", "j"), replicates=0)


def answers(*rows):
    return pl.DataFrame(rows, schema=["sample_id", "cluster_id", "correct", "confidence"], orient="row")


def manifest(**families):
    return pl.DataFrame(
        {"sample_id": list(families), "content_family": list(families.values())},
        schema={"sample_id": pl.String, "content_family": pl.String},
    )


ANSWERS = answers(("a", "i", True, 0.75), ("b", "i", False, 0.25), ("c", "j", True, 0.5), ("d", "j", False, 0.5))


def test_values_and_sizes_by_hand():
    rows = family_rows(ANSWERS, manifest(a="organ", b="organ", c="color", d=None), DRAWS)
    found = {(row["subset"], row["metric"]): row for row in rows}
    assert [subset for subset, metric in found if metric == "brier"] == ["family:color", "family:organ"]
    organ = {metric: found["family:organ", metric]["estimate"] for metric in ("accuracy", "auroc", "brier")}
    assert organ == {"accuracy": 0.5, "auroc": 1.0, "brier": 0.0625}  # (.25^2 + .25^2) / 2
    assert (found["family:organ", "ece15"]["n"], found["family:organ", "ece15"]["n_clusters"]) == (2, 1)
    color = found["family:color", "auroc"]
    assert (color["estimate"], color["n"]) == (None, 1)
    assert color["reason"].startswith("one class only")
    assert found["family:color", "brier"]["estimate"] == 0.25
    # Both answers about organs are of one image, whose sign changes nothing.
    assert found["family:organ", "ece15_noise_floor"]["reason"] == "all rows are of one image"


def test_a_data_set_without_families_has_no_rows():
    assert family_rows(ANSWERS, manifest(a=None, b=None, c=None, d=None), DRAWS) == []
