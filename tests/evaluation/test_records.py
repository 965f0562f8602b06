import polars as pl

from dualread.artifacts.tables import from_rows
from dualread.evaluation.aggregates import KEYS, aggregate
from dualread.evaluation.records import ANSWERS, PAIRS, ccg_domains, method_domain_seed
from dualread.reporting.tables.values import Key, summarize
from dualread.schema.columns import METRICS
from tests.evaluation.test_aggregates import row

DOMAINS = ["slake", "a", "b"]


def collected(*rows):
    """The rows with the means over a and b, as collect_metrics adds them."""
    estimates = from_rows(list(rows), METRICS)
    return pl.concat([estimates, aggregate(estimates, ood=["a", "b"], ood_ccg=["a", "b"])]).sort(KEYS)


def one(frame, **key):
    found = frame.filter(**key)
    assert len(found) == 1
    return found.row(0, named=True)


ANSWERED = collected(
    *(
        row(domain, metric, value + k / 8, seed=seed)
        for domain, value in (("slake", 0.5), ("a", 0.25), ("b", 0.75))
        for k, seed in enumerate((17, 29))
        for metric in ANSWERS
        if (domain, metric, seed) != ("b", "auroc", 29)
    ),
    row("b", "auroc", None, seed=29, reason="one class only"),
    row("a", "accuracy", 0.125, subset="open"),
    row("a", "accuracy", 0.125, split="validation"),
    row("a", "auroc", 0.3, method="base", actor="base", seed=0),
)


def test_one_row_a_run_and_domain_sorted():
    found = method_domain_seed(ANSWERED, DOMAINS)
    assert found.columns == ["backbone", "method", "actor", "domain", "seed", *ANSWERS, "reason"]
    assert found.select("method", "domain", "seed").rows() == [
        ("base", "a", 0),
        ("base", "ood6", 0),
        *(("psr", domain, seed) for domain in ("a", "b", "ood6", "slake") for seed in (17, 29)),
    ]
    assert one(found, method="psr", domain="a", seed=29)["hce90"] == 0.375  # .25 + 1/8
    assert one(found, method="psr", domain="a", seed=17)["accuracy"] == 0.25  # of all test questions
    assert one(found, method="psr", domain="slake", seed=17)["reason"] is None


def test_the_mean_is_of_each_seed_and_equals_the_tables_ood6():
    found = method_domain_seed(ANSWERED, DOMAINS)
    # (.25 + .75)/2 and (.375 + .875)/2
    means = [one(found, method="psr", domain="ood6", seed=seed)["brier"] for seed in (17, 29)]
    assert means == [0.5, 0.625]
    value = summarize(ANSWERED, seeds={"tiny": (17, 29)})[Key("tiny", "ood6", "all", "psr", "brier")]
    assert value.mean == sum(means) / 2
    assert dict(value.by_seed) == dict(zip((17, 29), means, strict=True))


def test_undefined_is_empty_with_the_reason_and_so_is_a_mean_over_it():
    found = method_domain_seed(ANSWERED, DOMAINS)
    hole = one(found, method="psr", domain="b", seed=29)
    assert (hole["auroc"], hole["accuracy"], hole["reason"]) == (None, 0.875, "auroc: one class only")
    assert one(found, method="psr", domain="ood6", seed=29)["reason"] == "auroc: b: one class only"
    base = one(found, method="base", domain="ood6")
    assert base["reason"].split("; ")[:3] == ["accuracy: a: missing", "b: missing", "auroc: b: missing"]


def test_the_decomposition_by_domain():
    values = {"natural_ccg_auc": 0.5, "strict_ccg_auc": 0.25, "decisive_pairs": 40.0, "strict_decisive_pairs": 20.0,
              "source_images": 31.0, "strict_source_images": 18.0, "donor_images": 30.0, "strict_donor_images": 12.0,
              "natural_few_sources": 0.0, "natural_few_donors": 0.0,
              "strict_few_sources": 1.0, "strict_few_donors": 1.0}  # fmt: skip
    assert set(values) == set(PAIRS)
    rows = [row("a", name, value) for name, value in values.items()]
    rows += [row("b", name, 0.75 if name.endswith("auc") else 0.0) for name in values]
    rows += [row("c", "natural_ccg_auc", None, reason="no question has a donor")]  # has no pairs
    metrics = collected(*rows)
    found = ccg_domains(metrics, ["a", "b"])
    assert found.columns == ["backbone", "method", "actor", "domain", "seed", *PAIRS, "reason"]
    assert found["domain"].to_list() == ["a", "b", "ood_ccg"]
    first = one(found, domain="a")
    assert {name: first[name] for name in PAIRS} == {
        **values,
        "natural_few_sources": False,
        "natural_few_donors": False,
        "strict_few_sources": True,
        "strict_few_donors": True,
    }
    mean = one(found, domain="ood_ccg")
    assert first["reason"] is None
    assert mean["reason"].startswith("decisive_pairs: no mean; strict_decisive_pairs: no mean; ")
    # (.5 + .75)/2 and (.25 + .75)/2; one of the two members of the strict mean is underpowered
    assert (mean["natural_ccg_auc"], mean["strict_ccg_auc"]) == (0.625, 0.5)
    assert (mean["natural_few_donors"], mean["strict_few_donors"], mean["decisive_pairs"]) == (False, True, None)
    value = summarize(metrics, seeds={"tiny": (17,)})[Key("tiny", "ood_ccg", "all", "psr", "strict_ccg_auc")]
    assert (value.mean, value.short) == (0.5, ("source", "donor"))
