from dualread.reporting.tables import families
from dualread.stages import build_table
from tests.reporting.tables.layouts import TINY, TOKEN, datasets, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body
from tests.reporting.tables.synthetic import swapped

METHODS = [method("rlvr", TOKEN, label="Token"), method("dualread", label="DualRead")]
STUDY = layout(METHODS, TINY, datasets=datasets("path_vqa", "pmc_vqa"))


def rows(dataset, **sizes):
    return [
        row
        for family, n in sizes.items()
        for of in ("rlvr", "dualread")
        for row in over_seeds(of, "accuracy", [0.5] * 3, dataset=dataset, subset=f"family:{family}", n=n)
    ]


def test_counts_per_family_with_those_of_the_paper_for_pathvqa():
    found = [*rows("slake", body_part=12, position=7), *rows("path_vqa", position=40, presence=430, other=1)]
    table = build_table.build(families, metrics(*found), STUDY)
    assert r"Family & SLAKE-test & PathVQA & (paper) \\" in table.tex.splitlines()  # PMC-VQA records none
    assert body(table) == [
        r"body\_part & $12$ & --- & --- \\",
        r"modality & --- & --- & $10$ \\",
        r"other & --- & $1$ & $506$ \\",
        r"position & $7$ & $40$ & $51$ \\",
        r"presence & --- & $430$ & $429$ \\",
        r"size & --- & --- & $4$ \\",
    ]
    cells = table.cells.filter(subset="family:body_part").select("dataset", "method", "metric", "mean", "reason").rows()
    assert cells == [
        ("slake", "", "questions", 12.0, None),
        ("path_vqa", "", "questions", None, "no question of this family"),
        ("path_vqa", "paper", "questions", None, "the paper names no such family"),
    ]


def test_counts_that_differ_between_runs_are_undefined():
    found = [*rows("slake", organ=12)[:3], *rows("slake", organ=13)[3:]]
    table = build_table.build(families, metrics(*found), STUDY)
    assert table.cells.select("printed", "reason").rows() == [("---", "not the same number in every run")]


def test_the_papers_counts_are_of_its_thousand_questions():
    assert sum(families.PUBLISHED["path_vqa"].values()) == 1000  # 10 + 51 + 429 + 4 + 506


def test_a_study_without_families_has_an_empty_table():
    table = build_table.build(families, metrics(*over_seeds("rlvr", "accuracy", [0.5] * 3)), STUDY)
    assert (body(table), len(table.cells)) == ([], 0)
    assert "PathVQA" not in table.tex


def test_swapped_data_sets_exchange_their_counts_and_swapped_methods_and_seeds_nothing():
    found = [*rows("slake", organ=12, size=5), *rows("path_vqa", organ=40, size=41)]
    before, other, method, seed = (
        body(build_table.build(families, metrics(*of), STUDY))
        for of in (
            found,
            swapped(found, "dataset", "slake", "path_vqa"),
            swapped(found, "method", "rlvr", "dualread"),
            swapped(found, "seed", 17, 43),
        )
    )
    assert before[-1] == r"size & $5$ & $41$ & $4$ \\"
    assert other[-1] == r"size & $41$ & $5$ & $4$ \\"
    assert before == method == seed
