"""What the tables of a small study show, and which methods it compares, written out by hand."""

import pytest

from dualread.schema.metrics import ContrastSpec
from dualread.schema.study import Config
from dualread.study.tables import StudyTables
from tests.study.small import read, small


def tables_of(config):
    return StudyTables(Config.model_validate(config))


@pytest.fixture
def config():
    return small()


def test_a_table_shows_a_new_method_unless_it_says_otherwise(config):
    config["methods"]["new"] = {"label": "New", **read("rlvr", "verbalized")}
    tables = tables_of(config)
    assert tables.rows("all") == list(config["methods"])
    assert tables.rows("main") == ["base", "own", "per", "dualread", "new"]
    assert tables.rows("some") == ["dualread", "base"]


def test_a_table_reads_the_metrics_of_one_actor_where_it_shows_no_other(config):
    own = {"methods": ["psr", "dualread"]}
    config["tables"] = {"main": {"methods": ["dualread", "base"]}, "cascade": own, "intervals": own}
    tables = tables_of(config)
    assert [tables.only_actor(table) for table in config["tables"]] == [None, "rlvr", None]


def test_contrasts(config):
    config["contrasts"] = {
        "default": {"method": "dualread", "baseline": "own"},
        "visual": {
            "method": "per",
            "baseline": "p_state",
            "datasets": ["slake"],
            "split": "validation",
            "metrics": ["auroc"],
        },
    }
    config["tables"]["main"]["method"] = "dualread"
    default, visual, main = tables_of(config).contrasts()
    places = ("slake", "ood6", "ood_ccg")
    expected = ContrastSpec(name="default", method="dualread", baselines=("own",), datasets=places, split="test")
    assert default == expected
    where = {"datasets": ("slake",), "split": "validation", "metrics": ("auroc",)}
    assert visual == ContrastSpec(name="visual", method="per", baselines=("p_state",), **where)
    others = {"baselines": ("base", "own", "per"), "datasets": ("slake", "pmc", "ood6", "ood_ccg")}
    assert main == ContrastSpec(name="main", method="dualread", **others, split="test")


def test_a_table_shows_all_data_sets_or_those_that_it_lists(config):
    config["tables"]["some"]["datasets"] = ["pmc"]
    assert (tables_of(config).datasets("all"), tables_of(config).datasets("some")) == (["slake", "pmc"], ["pmc"])


def test_a_table_shows_all_seeds_of_a_backbone_or_those_that_it_lists(config):
    backbone, seeds = next(iter(config["backbones"])), config["seeds"]
    config["tables"]["some"]["seeds"] = [seeds[-1], 5]
    tables = tables_of(config)
    assert (tables.seeds("all", backbone), tables.seeds("some", backbone)) == (seeds, [seeds[-1]])
    config["backbones"][backbone]["seeds"] = [5, 7]
    tables = tables_of(config)
    assert (tables.seeds("all", backbone), tables.seeds("some", backbone)) == ([5, 7], [5])


def test_each_method_is_compared_with_all_nulls_in_distribution(config):
    tables = tables_of(config)
    found = tables.against(["psr", "own"], ["per", "dualread"])
    places = {"datasets": ("slake",), "split": "test", "metrics": ("auroc", "natural_ccg_auc")}
    assert found == [
        ContrastSpec(name="nulls", method=method, baselines=("psr", "own"), **places) for method in ("per", "dualread")
    ]
    assert tables.against([], ["per"]) == []


def test_tables_are_compared_with_the_paper_where_the_study_has_a_backbone_of_it(config):
    config["tables"] = {"main": {}, "data": {}, "intervals": {}}
    assert tables_of(config).in_paper() == []
    config["backbones"]["qwen3-vl-2b"] = config["backbones"].pop("qwen")
    assert tables_of(config).in_paper() == ["main", "data"]


def test_a_mean_over_pairs_has_the_data_sets_whose_donors_exchange_all_images(config):
    config["datasets"] |= {
        name: config["datasets"]["slake"]
        | {"id": False, "splits": ["test"], "roles": {"test": "ood"}, "pairing": pairing}
        for name, pairing in (
            ("all", {"splits": ["test"], "match_on": []}),
            ("current", {"splits": ["test"], "match_on": [], "role": "current"}),
            ("none", None),
        )
    }
    assert tables_of(config).ood_means() == {"ood": ("pmc", "all", "current", "none"), "ood_ccg": ("all",)}
