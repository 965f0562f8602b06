import pytest

from dualread.data.datasets.path_vqa import load_rows
from tests.data.datasets.tables import write_tables


def test_of_exact_repetitions_the_first_is_kept(tmp_path):
    first = [(b"one", "Is it necrosis?", "yes"), (b"one", "is it necrosis?", "yes"), (b"one", "Is it necrosis?", "no")]
    again = [(b"one", "Is it necrosis?", "yes"), (b"two", "Is it necrosis?", "yes"), (b"two", "What?", "Ulcer")]
    write_tables(tmp_path, "test", first, again)
    loaded = load_rows(tmp_path, "test", {})
    assert [row.source_row for row in loaded.rows] == [0, 1, 2, 4, 5]  # row 3 repeats row 0; case and image count
    assert [row.answer_type for row in loaded.rows] == ["closed"] * 4 + ["open"]
    assert len({row.official_id for row in loaded.rows}) == 5
    assert len({row.image_name for row in loaded.rows}) == 2
    (step,) = loaded.audit
    assert (step.step, step.kept, step.dropped) == ("exact repetitions", 5, 1)


@pytest.mark.parametrize(
    ("question", "family"),
    [
        ("What does the x-ray show?", "modality"),
        ("Is the electron microscopic appearance present?", "modality"),  # the first family in the list decides
        ("Where are liver stem cells (oval cells) located?", "position"),
        ("What shows positive tumour cells in perivascular location?", "position"),
        ("Does it show minimal variation in nuclear size?", "size"),
        ("Are abscesses PRESENT in the putamen?", "presence"),
        ("What is present?", "presence"),
        ("Is it representative of oversized directories?", "other"),  # whole words only
        ("Is squamous cell carcinoma composed of nests?", "other"),
    ],
)
def test_content_family(tmp_path, question, family):
    write_tables(tmp_path, "test", [(b"one", question, "x")])
    assert load_rows(tmp_path, "test", {}).rows[0].content_family == family
