"""Columns of a user's table that make groups of answers: beside the table of questions, and nowhere without them."""

import pytest

from dualread.artifacts.tables import read_table
from dualread.errors import ConfigError, DataError
from dualread.schema.columns import MANIFEST, QUESTION_COLUMNS
from dualread.schema.data import ListClaimsSpec
from dualread.stages import build_manifest, list_claims
from dualread.stages._joined import read_groups
from tests import specs
from tests.data.datasets.test_source_rows import PNG
from tests.stages import shards

TABLE = """id,question,reference_answers,image,Geschlecht,site,location
1,q?,yes,a.png,f,2,Brain
2,r?,no,a.png,, 3 ,
3,s?,no,a.png,nan,2,Lung
"""


def built(tmp_path, name, **settings):
    (source := tmp_path / f"{name} files").mkdir()
    (source / "test.csv").write_text(TABLE)
    (source / "a.png").write_bytes(PNG)
    (out := tmp_path / name).mkdir()
    how = {"settings": settings, "roles": "ood", "dataset": "clinic", "split": "test"}
    build_manifest.compute(specs.manifest(**how, loader="table"), {"source": source}, out)
    return out


def test_the_columns_are_in_a_file_of_their_own(tmp_path):
    plain = built(tmp_path, "plain", columns={"modality": "site"})
    out = built(tmp_path, "out", columns={"modality": "site", "sex": "Geschlecht"}, subgroups=["sex"])
    assert not (plain / "question_columns.parquet").exists()
    assert (plain / "manifest.parquet").read_bytes() == (out / "manifest.parquet").read_bytes()
    rows = read_table(
        built(tmp_path, "both", columns={"sex": "Geschlecht"}, subgroups=["sex", "site"]) / "question_columns.parquet",
        QUESTION_COLUMNS,
    )
    assert rows.rows() == [
        ("clinic/test/1", "sex", "f"), ("clinic/test/1", "site", "2"),
        ("clinic/test/2", "sex", None), ("clinic/test/2", "site", "3"),
        ("clinic/test/3", "sex", None), ("clinic/test/3", "site", "2"),
    ]  # fmt: skip
    found = read_groups({"manifest/clinic/test": out}, "manifest/clinic/test", ["location", "sex", "age"])
    assert found.select("location", "sex", "age").rows() == [
        ("brain", "f", None),
        (None, None, None),
        ("lung", None, None),
    ]


def test_a_column_that_is_not_there_or_that_every_study_has_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"test\.csv: no column 'age'"):
        built(tmp_path, "missing", columns={"modality": "site"}, subgroups=["age"])
    with pytest.raises(ConfigError, match="'method' is a column of every study"):
        built(tmp_path, "taken", subgroups=["method"])


def test_a_claim_has_the_columns_of_its_question(tmp_path):
    questions = shards.manifest_rows(2, split="test", roles=("test",))
    ids = [row["sample_id"] for row in questions]
    manifest = shards.write(tmp_path / "manifest", "manifest", questions)
    values = [
        {"sample_id": ids[0], "column": "sex", "value": "f"},
        {"sample_id": ids[1], "column": "sex", "value": None},
    ]
    shards.write(tmp_path / "columns", "question_columns", values)
    (tmp_path / "columns/question_columns.parquet").rename(manifest / "question_columns.parquet")
    key = [{"sample_id": f"{ids[k]}#{n}", "condition": "original", "sample_index": 0, "image_id": "i"}
           for k, n in ((0, 0), (0, 1), (1, 0))]  # fmt: skip
    graded = tmp_path / "graded"
    labels = {"answer": "a", "canonical_answer": "a", "parse_status": "valid", "correct": True}
    shards.write(graded, "graded", [{**of, **labels} for of in key])
    claims = [{**of, "question": of["sample_id"][:-2], "start": 0, "end": 1, "text": "a"} for of in key]
    shards.write(tmp_path / "claims", "claims", claims)
    (tmp_path / "claims/claims.parquet").rename(graded / "claims.parquet")
    (out := tmp_path / "out").mkdir()
    run = {"backbone": "tiny", "actor": "rlvr", "seed": 17, "dataset": "slake", "split": "test"}
    list_claims.compute(ListClaimsSpec(**run), {"manifest": manifest, "graded": graded}, out)
    found = read_table(out / "question_columns.parquet", QUESTION_COLUMNS).select("sample_id", "value")
    assert found.rows() == [(f"{ids[0]}#0", "f"), (f"{ids[0]}#1", "f"), (f"{ids[1]}#0", None)]
    assert read_table(out / "manifest.parquet", MANIFEST)["sample_id"].to_list() == found["sample_id"].to_list()
