import pytest

from dualread.apps.explain.cells import find_cell
from dualread.errors import ConfigError
from dualread.store.place import find_target
from tests.apps.explain.small_study import SmallStudy


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    study = SmallStudy(tmp_path_factory.mktemp("small"))
    return find_target(study.table.key, study.store)


@pytest.mark.parametrize(
    "words", ["tiny,dualread,slake,auroc", "auroc dualread slake", "method=dualread, slake, auroc, 17"]
)
def test_any_words_that_only_one_cell_has_find_it(table, words):
    assert find_cell(table, words).name == "tiny,slake,all,dualread,auroc"


def test_a_pasted_row_of_the_csv_finds_its_cell(table):
    line = next(line for line in (table.directory / "main.csv").read_text().splitlines() if "dualread,auroc" in line)
    assert find_cell(table, line).name == "tiny,slake,all,dualread,auroc"


@pytest.mark.parametrize(
    ("words", "seed"),
    [("dualread slake auroc", None), ("dualread slake auroc 29", 29), ("seed=2 dualread slake auroc", 2)],
)
def test_a_seed_may_be_given(table, words, seed):
    # The table holds the value 2 (its number of seeds), so seed 2 has to be given as seed=2.
    assert find_cell(table, words).seed == seed


def test_several_cells_are_listed(table):
    with pytest.raises(
        ConfigError, match=r"2 cells have these words(.|\n)*tiny,slake,all,psr,auroc\n  tiny,slake,all,dualread,auroc"
    ):
        find_cell(table, "slake,auroc")


def test_a_wrong_word_lists_the_nearest_cells(table):
    with pytest.raises(ConfigError) as error:
        find_cell(table, "dualreed,slake,auroc")
    assert str(error.value).splitlines()[:2] == [
        "--cell dualreed,slake,auroc: no cell has all these words. The nearest:",
        "  tiny,slake,all,dualread,auroc",
    ]


def test_the_nearest_value_and_column_are_suggested(table):
    with pytest.raises(ConfigError) as error:
        find_cell(table, "dualreed,slake,metrik=auroc")
    lines = str(error.value).splitlines()
    assert "No cell has 'dualreed'. Did you mean 'dualread'?" in lines
    assert any(line.startswith("There is no column 'metrik'.") for line in lines)
    assert lines[-1].endswith("Did you mean 'metric'?")
