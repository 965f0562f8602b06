"""The controls at the top of the report."""

from typing import Any

from dualread.artifacts.tables import from_rows
from dualread.reporting.report.audits import controls, described
from dualread.schema.columns import DIFFICULTY
from tests.reporting.tables import contrasts

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
    tested = {"baseline": baseline, "p": p, "p_holm": p, "p_holm_at_most": None if p is None else p < 0.005}
    made = contrasts.row(method, metric, estimate, **{"backbone": "qwen", "n_clusters": 100, **tested, **columns})
    known = {name: value for name, value in made.items() if name in DIFFICULTY.columns}
    return {"actor": "rlvr", "reading": reading, **known}


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
    return described(from_rows(given, DIFFICULTY), LABELS)


def lines(given):
    """The lines of the one table after their first cell, by it."""
    [grid] = found(given)
    assert all(len(line) == len(grid.columns) for line in grid.rows)
    return {line[0]: line[1:] for line in grid.rows}


def test_the_table_has_all_methods_the_nulls_and_the_true_difficulty():
    [grid] = found(rows())
    assert grid.columns == (
        *("Method", "Own image: AUROC", "Own image: p, Prior", "Own image: verdict"),
        *("Another image: AUROC", "Another image: p, Prior", "Another image: verdict"),
    )
    assert grid.caption.startswith(
        "Qwen, GRPO: .850 [.750, .950] of the answers about 60 clear images of SLAKE-test are right, and .400 [.300, "
        ".500] about 40 hazy ones."
    )
    assert lines(rows()) == {
        "True difficulty": (".750 [.650, .850]", "", "", "", "", ""),
        "SAPLMA": (*(".550 [.450, .650]", "<.001", "not above every null") * 2,),
        "DualRead": (
            *(".800 [.700, .900]", "≤.002", "above every null"),
            *(".610 [.510, .710]", ".900", "not above every null"),
        ),
        "Prior": (*(".600 [.500, .700]", "", "") * 2,),
    }
    assert list(lines(rows())) == ["True difficulty", "SAPLMA", "DualRead", "Prior"]


def test_a_method_is_above_the_nulls_only_with_a_small_p_and_a_positive_difference():
    for given in (rows(p_own=0.2), rows(difference=-0.2)):
        assert lines(given)["DualRead"][2] == "not above every null"
    assert lines(rows(p_exchanged=0.01))["DualRead"][5] == "above every null"


def test_an_undefined_value_has_its_reason():
    given = [{**one, "p_holm": None} for one in rows()]
    given[2] = row(estimate=None)
    assert lines(given)["True difficulty"][0] == "undefined (one class only)"
    assert lines(given)["DualRead"][1:3] == ("—", "not above every null")


def test_a_study_without_known_difficulty_has_no_controls(tmp_path):
    assert controls(tmp_path, LABELS) == []
