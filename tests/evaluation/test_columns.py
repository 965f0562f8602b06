"""Rows as arrays against the same questions asked of the data frame."""

import gc
import weakref

import numpy as np
import polars as pl
import pytest

from dualread.evaluation.columns import CellColumns, Columns, all_rows, decisive, strict_decisive
from dualread.evaluation.join import NO_DONORS, Joined
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.evaluation.statistics.proportion import share_interval

MASKS = {
    "all": all_rows,
    "decisive": decisive("donor"),
    "fixed": decisive("fixed"),
    "strict": strict_decisive,
}


@pytest.fixture(scope="module")
def draws(evaluated):
    images = tuple(sorted(set(evaluated.answers["cluster_id"])))
    return ClusterDraws(names=("study",), cluster_ids=images, replicates=3)


def of_types(evaluated):
    """Yield (columns of the fixed pairs, the same rows as a frame) of all questions and of each answer type."""
    cell = CellColumns.of(evaluated)
    yield cell.fixed, evaluated.fixed
    for answer_type in ("open", "closed"):
        yield cell.of_type(answer_type).fixed, evaluated.fixed.filter(answer_type=answer_type)


def chosen_rows(frame, name):
    """Return the rows of a mask, as the definitions say it."""
    real, donor, fixed = (pl.col(f"correct_{which}") for which in ("real", "donor", "fixed"))
    answers = [pl.col(f"canonical_answer_{which}") for which in ("real", "donor")]
    same = (answers[0] == answers[1]) & (answers[0] != "")
    wanted = {"all": pl.lit(True), "decisive": real & ~donor, "fixed": real & ~fixed, "strict": real & ~donor & same}
    return frame.filter(wanted[name])


@pytest.mark.parametrize("name", MASKS)
def test_rows_of_a_mask_and_of_a_type_are_those_of_the_frame(evaluated, draws, name):
    for rows, frame in of_types(evaluated):
        chosen, expected = rows.mask(MASKS[name]), chosen_rows(frame, name)
        assert len(rows) == len(frame) > 0
        assert rows["sample_id"][chosen].tolist() == expected["sample_id"].to_list()
        for image in ("source_cluster_id", "donor_cluster_id"):
            assert rows.n_distinct(image, chosen) == expected[image].n_unique()
            assert rows.cluster(image, draws)[chosen].tolist() == draws.cluster_of(expected[image]).tolist()
    assert len(chosen_rows(evaluated.fixed, name)) > 0


def test_what_there_is_no_table_of_stays_a_reason(evaluated):
    cell = CellColumns.of(Joined(answers=evaluated.answers, pairs=NO_DONORS, fixed=NO_DONORS, shuffled="none"))
    assert (cell.pairs, cell.fixed, cell.shuffled) == (NO_DONORS, NO_DONORS, "none")
    assert cell.of_type("open").pairs == NO_DONORS


def test_columns_are_freed_when_nobody_needs_them(evaluated, draws):
    columns = Columns.of(evaluated.answers)
    columns.cluster("cluster_id", draws)
    freed = weakref.ref(columns)
    gc.disable()
    try:
        del columns
        assert freed() is None
    finally:
        gc.enable()


def test_what_the_process_has_read_before_changes_no_bit_of_an_interval():
    """Polars numbers the texts of all tables of a process together, in the order in which they come."""
    rng = np.random.default_rng(1)
    for table in range(150):
        image, correct = rng.integers(0, 30, size=100), rng.random(100) < 0.6
        found = []
        for first in "ab":
            names = [f"{first} {table} {k:02d}" for k in image]
            rows = Columns.of(pl.DataFrame({"cluster_id": names, "correct": correct}))
            found.append(share_interval(rows["correct"], rows.codes("cluster_id")))
            for k in rng.permutation(30):  # of other tables, in which some images of the next one are
                pl.Series([f"b {table} {k:02d}", *(f"c {table} {k} {j}" for j in range(k % 9))], dtype=pl.Categorical)
        assert found[0] == found[1]


def test_equal_texts_are_one_object_and_nulls_stay():
    texts = [f"answer {i % 300}" for i in range(600)]
    answers = Columns.of(pl.DataFrame({"answer": [*texts, None]}))["answer"]
    assert answers.tolist() == [*texts, None]
    assert answers[0] is answers[300]


def test_no_rows_are_rows_too(evaluated, draws):
    none = Columns.of(evaluated.pairs).where(np.zeros(len(evaluated.pairs), dtype=np.bool_))
    assert (len(none), none.n_distinct("donor_cluster_id", all_rows(none))) == (0, 0)
    assert none.mask(strict_decisive).tolist() == none.cluster("source_cluster_id", draws).tolist() == []
