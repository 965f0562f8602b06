"""The controls at the top of the report."""

from typing import Any

from dualread.artifacts.tables import from_rows
from dualread.declared.columns import DIFFICULTY
from dualread.reporting.report.controls import describe, read

LABELS = {
    "backbones": {"qwen": "Qwen"},
    "actors": {"rlvr": "GRPO"},
    "datasets": {"slake": "SLAKE-test"},
    "methods": {"prior": "Prior", "saplma": "SAPLMA", "dualread": "DualRead"},
}


def row(
    method: str | None = None,
    estimate: float | None = 0.6,
    *,
    reading: str = "own",
    baseline: str | None = None,
    p: float | None = None,
    metric: str = "auroc",
    **columns: int,
) -> dict[str, Any]:
    return {
        "study": "s", "backbone": "qwen", "actor": "rlvr", "dataset": "slake", "reading": reading, "metric": metric,
        "method": method, "baseline": baseline, "estimate": estimate, "p": p, "p_holm": p,
        "p_at_most": None, "p_holm_at_most": None if p is None else p < 0.005, "p_retrained": None,
        "p_holm_retrained": None, "low_retrained": None, "high_retrained": None, "seed_std": None, "n_undefined": 0,
        "short": None,
        "low": None if estimate is None else estimate - 0.1, "high": None if estimate is None else estimate + 0.1,
        "n_seeds": 3, "n": 300, "n_clusters": 100, "reason": "one class only" if estimate is None else None, **columns,
    }  # fmt: skip


def rows(*, p_own=0.002, difference=0.2, p_exchanged=0.9):
    return [
        row(estimate=0.85, metric="accuracy_clear", n_clusters=60),
        row(estimate=0.4, metric="accuracy_hazy", n_clusters=40),
        row(estimate=0.75),
        *[
            one
            for reading, estimate, p in (("own", 0.8, p_own), ("exchanged", 0.61, p_exchanged))
            for one in (
                row("prior", reading=reading),
                row("dualread", estimate, reading=reading),
                row("saplma", 0.55, reading=reading),
                row("dualread", difference, reading=reading, baseline="prior", p=p),
                row("saplma", -0.05, reading=reading, baseline="prior", p=0.0001),
            )
        ],
    ]


def found(given):
    return describe(from_rows(given, DIFFICULTY), LABELS)


def texts(given):
    return {title: " ".join(sentences) for title, sentences in found(given).texts}


def test_both_controls_in_sentences():
    said = texts(rows())
    assert said["Positive control"] == (
        "Whether an answer is right depends on the image here: on how hazy it is, which is known of every phantom of "
        "SLAKE-test. Qwen, GRPO: .850 [.750, .950] of the answers about 60 clear images are right, and .400 [.300, "
        ".500] about 40 hazy ones. To know the haze and nothing else gives an AUROC of .750 [.650, .850]; without the "
        "image, Prior .600 [.500, .700]. Significantly above the null: DualRead .800 [.700, .900] (p ≤ .002); the "
        "other method is not."
    )
    assert said["Negative control"] == (
        "Now each answer gets the confidence in the same answer to the same question about another image, which cannot "
        "tell more than question and answer do. Qwen, GRPO: without the image, Prior .600 [.500, .700]. No method is "
        "significantly above the null. The highest AUROC is that of DualRead, .610 [.510, .710]."
    )


def test_a_positive_control_that_finds_nothing_says_so():
    assert "No method is significantly above the null." in texts(rows(p_own=0.2))["Positive control"]


def test_a_method_below_the_null_is_not_above_it_however_small_p_is():
    said = texts(rows(difference=-0.2))
    assert "No method is significantly above the null." in said["Positive control"]


def test_a_negative_control_that_finds_something_says_so():
    assert "Significantly above the null: DualRead" in texts(rows(p_exchanged=0.01))["Negative control"]


def test_an_undefined_value_has_its_reason():
    given = [{**one, "p_holm": None} for one in rows()]
    given[2] = row(estimate=None)
    said = texts(given)["Positive control"]
    assert "an AUROC of undefined (one class only)" in said
    assert "No method is significantly above the null." in said


def test_the_table_has_all_methods_and_the_true_difficulty():
    [grid] = found(rows()).grids
    assert [line[0] for line in grid.rows] == ["True difficulty", "SAPLMA", "DualRead", "Prior"]
    assert all(len(line) == len(grid.columns) for line in grid.rows)
    assert grid.rows[2][1:] == (".800 [.700, .900]", "≤ .002", ".610 [.510, .710]", "= .900")


def test_a_study_without_known_difficulty_has_no_controls(tmp_path):
    assert read(tmp_path, LABELS).texts == ()
