"""Means over seeds, and values in print."""

import pytest

from dualread.reporting.tables.entries import Number, plain
from dualread.reporting.tables.values import Key, Value, number, printed, rounded, summarize
from tests.reporting.tables import reading
from tests.reporting.tables.layouts import estimate, layout, metrics, over_seeds
from tests.specs import changed

SEEDS = {"tiny": (17, 29, 43)}
AUROC = Key("tiny", "slake", "all", "psr", "auroc")


def test_mean_and_sample_deviation_by_hand():
    # mean (.7 + .8 + .9) / 3 = .8; variance (.01 + 0 + .01) / 2 = .01, so the deviation is .1
    found = summarize(metrics(*over_seeds("psr", "auroc", [0.7, 0.8, 0.9])), seeds=SEEDS)[AUROC]
    assert (found.mean, found.std) == (pytest.approx(0.8), pytest.approx(0.1))
    assert (found.n_runs, found.n, found.reason) == (3, 100, None)


def test_one_run_has_no_deviation():
    found = summarize(metrics(estimate("psr", "auroc", 0.7, seed=0)), seeds=SEEDS)[AUROC]
    assert (found.mean, found.std, found.n_runs) == (0.7, None, 1)
    found = summarize(metrics(estimate("psr", "auroc", 0.7, seed=17)), seeds={"tiny": (17,)})[AUROC]
    assert (found.mean, found.std, found.n_runs) == (0.7, None, 1)


def test_a_mean_over_seeds_needs_all_seeds():
    rows = over_seeds("psr", "auroc", [0.7, None, 0.9], reason="one class only")
    found = summarize(metrics(*rows), seeds=SEEDS)[AUROC]
    assert (found.mean, found.std, found.reason) == (None, None, "seed 29: one class only")
    found = summarize(metrics(*rows[2:]), seeds=SEEDS)[AUROC]
    assert found.reason == "seeds 17, 29: missing"


def test_one_underpowered_run_is_enough_for_the_dagger():
    natural = over_seeds("psr", "natural_ccg_auc", [0.7, 0.8, 0.9])
    for flags, expected in (([0.0, 0.0, 0.0], ()), ([0.0, 1.0, 0.0], ("donor",)), ([0.0, 0.0, 1 / 3], ("donor",))):
        rows = [*natural, *over_seeds("psr", "natural_few_donors", flags)]
        assert summarize(metrics(*rows), seeds=SEEDS)[AUROC._replace(metric="natural_ccg_auc")].short == expected


@pytest.mark.parametrize(
    ("floors", "expected"),
    [([0.12, 0.12, 0.12], True), ([0.12, 0.10, 0.11], False), ([0.10, 0.11, 0.12], True), ([0.12, None, 0.12], False)],
)
def test_an_ece_is_by_chance_if_no_seed_is_above_its_floor(floors, expected):
    ece = over_seeds("psr", "ece15", [0.10, 0.11, 0.12])
    of_floors = over_seeds("psr", "ece15_noise_floor", floors, reason="all rows are of one image")
    found = summarize(metrics(*ece, *of_floors), seeds=SEEDS)
    assert found[AUROC._replace(metric="ece15")].by_chance is expected


def test_the_dagger_is_of_the_seeds_that_the_table_shows():
    rows = [*over_seeds("psr", "natural_ccg_auc", [0.7, 0.8, 0.9])]
    rows += over_seeds("psr", "natural_few_sources", [1.0, 0.0, 0.0])  # of the first seed
    key = AUROC._replace(metric="natural_ccg_auc")
    assert summarize(metrics(*rows), seeds={"tiny": (43,)})[key].short == ()
    assert summarize(metrics(*rows), seeds={"tiny": (17,)})[key].short == ("source",)


def test_what_the_runs_can_detect_is_known_if_it_is_of_all_of_them():
    key = AUROC._replace(metric="natural_ccg_auc")
    for values, expected in (([0.6, 0.7, 0.65], 0.7), ([0.6, None, 0.65], None)):
        rows = [*over_seeds("psr", "natural_ccg_auc", [0.7] * 3)]
        rows += over_seeds("psr", "natural_detectable", values, reason="not even 1")
        assert summarize(metrics(*rows), seeds=SEEDS)[key].detectable == expected


def test_other_splits_are_ignored():
    rows = [*over_seeds("psr", "auroc", [0.7] * 3), estimate("psr", "auroc", 0.1, split="validation")]
    assert summarize(metrics(*rows), seeds=SEEDS)[AUROC].mean == 0.7


def test_published_values_are_keyed_as_ours():
    values = reading.published("main")
    assert len(values) == 2 * 76  # 38 cells in distribution and 38 OOD, two backbones
    key = Key("qwen3-vl-2b", "ood_ccg", "all", "base", "strict_ccg_auc")
    assert (values[key].mean, values[key].std, values[key].n_runs) == (0.622, None, 1)
    assert values[key._replace(dataset="ood6", metric="auroc")].mean == 0.696


def value(mean, std=None, **changes):
    return Value(mean=mean, std=std, n_runs=3, n=10, **changes)


@pytest.mark.parametrize(
    ("given", "printed"),
    [(0.952, ".952"), (0.0, ".000"), (1.0, "1.000"), (-0.0134, "-.013"), (-0.0001, ".000"), (0.9996, "1.000"),
     (-1.25, "-1.250"), (10.5, "10.500"), (0.0005001, ".001")],
)  # fmt: skip
def test_number(given, printed):
    assert number(given) == printed


@pytest.mark.parametrize(
    ("given", "digits", "printed"),
    [
        (87.25, 1, "87.2"),
        (2.0, 0, "2"),
        (0.0, 0, "0"),
        (-0.2, 0, "0"),
        (10.0, 0, "10"),
        (0.0, 1, ".0"),
        (0.44, 1, ".4"),
    ],
)
def test_number_with_other_decimals(given, digits, printed):
    assert number(given, digits) == printed


def test_a_count_that_is_the_same_in_every_run_has_no_deviation():
    assert printed(value(2.0, 0.0), 0) == Number("2")
    assert [plain(printed(value(2.4, 0.6), 0)), plain(printed(value(87.25, 0.0), 1))] == ["2±1", "87.2±.0"]


def test_rounded_equals_the_printed_number():
    assert rounded(0.95249) == rounded(0.95151) == 0.952
    assert str(rounded(-0.0001)) == "0.0"


def test_a_caption_says_what_is_resampled():
    shown = changed(layout([]), units={"SLAKE-test": "image", "Frames": "patient", "Clinic": "patient"})
    text = "Over other {units}, each {unit} at once."
    of_which = "Resampled are images of SLAKE-test; patients of Frames, Clinic."
    assert shown.in_units(text) == f"Over other images or patients, each image or patient at once. {of_which}"
    assert shown.in_units("a {unit}-cluster") == f"a image or patient-cluster. {of_which}"  # no sentence, in a table
    assert [shown.units_of(label) for label in ("SLAKE-test", "Clinic", "another")] == ["images", "patients", "images"]
    alone = changed(shown, units={"Frames": "patient"})
    assert alone.in_units(text) == "Over other patients, each patient at once."
    assert layout([]).in_units(text) == "Over other images, each image at once."
