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
    ("words", "seed"),
    [
        ("tiny,dualread,slake,auroc", None),
        ("auroc dualread slake", None),
        ("method=dualread, slake, auroc, 17", 17),
        ("dualread slake auroc 29", 29),
        ("seed=2 dualread slake auroc", 2),  # the table holds the value 2, its number of seeds
        (None, None),
    ],
)
def test_any_words_that_only_one_cell_has_find_it(table, words, seed):
    rows = (table.directory / "main.csv").read_text().splitlines()
    cell = find_cell(table, words or next(line for line in rows if "dualread,auroc" in line))  # a pasted row
    assert (cell.name, cell.seed) == ("tiny,slake,all,dualread,auroc", seed)


def test_several_cells_and_the_nearest_ones_are_listed(table):
    both = r"2 cells have these words(.|\n)*tiny,slake,all,psr,auroc\n  tiny,slake,all,dualread,auroc"
    with pytest.raises(ConfigError, match=both):
        find_cell(table, "slake,auroc")
    with pytest.raises(ConfigError) as error:
        find_cell(table, "dualreed,slake,auroc")
    assert str(error.value).splitlines()[1] == "  tiny,slake,all,dualread,auroc"
    with pytest.raises(ConfigError) as error:
        find_cell(table, "dualreed,slake,metrik=auroc")
    lines = str(error.value).splitlines()
    assert "No cell has 'dualreed'. Did you mean 'dualread'?" in lines
    assert lines[-1].endswith("Did you mean 'metric'?")
