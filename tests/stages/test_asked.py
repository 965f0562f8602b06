from types import SimpleNamespace

import polars as pl
import pytest

from dualread.artifacts.tables import from_rows, write_table
from dualread.errors import DataError
from dualread.schema.columns import MANIFEST
from dualread.stages._asked import refuse_control_tokens


def _manifest(folder, *questions):
    row = {name: [] if kind.dtype == pl.List(pl.String) else None for name, kind in MANIFEST.columns.items()}
    row |= {"reference_answers": ["a"], "source_row": 0}
    texts = {name: "x" for name, kind in MANIFEST.columns.items() if kind.dtype == pl.String}
    rows = [
        row | texts | {"sample_id": f"mine/test/{k}", "question": question, "options": options}
        for k, (question, options) in enumerate(questions)
    ]
    write_table(folder / "manifest.parquet", from_rows(rows, MANIFEST), MANIFEST)


def test_a_question_with_a_control_token_of_the_model_is_refused_before_it_is_asked(tmp_path):
    tokens = {0: SimpleNamespace(content="<odd>", special=True), 1: SimpleNamespace(content="lesion", special=False)}
    tokenizer = SimpleNamespace(added_tokens_decoder=tokens)
    _manifest(tmp_path, ("Is there a lesion?", ["yes", "no"]))
    refuse_control_tokens(tmp_path, tokenizer)
    _manifest(tmp_path, ("Is there a lesion?", []), ("Is <odd> there?", []), ("Is it?", ["yes", "<odd>no"]))
    with pytest.raises(DataError) as error:
        refuse_control_tokens(tmp_path, tokenizer)
    assert [line.partition(",")[0] for line in str(error.value).splitlines()] == [
        "mine/test/1: the text 'Is <odd> there?' contains the model's control token '<odd>'",
        "mine/test/2: the text '<odd>no' contains the model's control token '<odd>'",
    ]
