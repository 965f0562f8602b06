import hashlib

import polars as pl
import pytest

from dualread.artifacts.tables import read_table, write_table
from dualread.errors import DataError
from dualread.grading.canonical import canonical
from dualread.schema.columns import MANIFEST, PAIRS
from dualread.schema.data import PairDonorsSpec
from dualread.stages import build_manifest, draw_phantom, pair_donors
from tests import specs


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("manifest")
    images = {"train": 1, "validation": 1, "test": 12}
    draw_phantom.compute(specs.phantom(images=images), {}, source)
    build_manifest.compute(specs.manifest(), {"source": source}, folder)
    return folder


def _pair(manifest, out, match_on):
    out.mkdir()
    summary = pair_donors.compute(
        PairDonorsSpec(dataset="slake", split="test", match_on=list(match_on)), {"manifest": manifest}, out
    )
    return summary, read_table(out / "pairs.parquet", PAIRS), pl.read_parquet(out / "audit.parquet")


def test_pairs_and_both_rules_of_the_audit(manifest, tmp_path):
    summary, pairs, audit = _pair(manifest, tmp_path / "a", ["modality"])
    assert audit["rule"].to_list() == ["match on modality", "match on nothing"]
    assert audit["n_questions"].to_list() == [96, 96]
    assert 0 < pairs.height == audit["n_pairs"][0] <= audit["n_pairs"][1]
    assert summary.startswith(f"read 96 questions, wrote {pairs.height} pairs")
    assert pairs["sample_id"].is_sorted()
    questions = read_table(manifest / "manifest.parquet", MANIFEST).select("sample_id", "modality", "image_id")
    joined = pairs.join(questions, on="sample_id").join(
        questions, left_on="donor_sample_id", right_on="sample_id", suffix="_donor"
    )
    assert joined.height == pairs.height
    assert (joined["modality"] == joined["modality_donor"]).all()
    assert (joined["image_id"] != joined["image_id_donor"]).all()
    assert (joined["image_id_donor"] == joined["donor_image_id"]).all()


def _written(questions, folder):
    folder.mkdir()
    write_table(folder / "manifest.parquet", questions, MANIFEST)
    return folder


def _with_copies(questions):
    """Two images at a time show one picture; of every ten questions, one has no gold answer and one has two."""
    picture = (questions["image_id"].rank("dense") - 1) // 2
    golds = [
        ["."] if i % 10 == 0 else [*golds, "Left."] if i % 10 == 1 else golds
        for i, golds in enumerate(questions["reference_answers"].to_list())
    ]
    return questions.with_columns(
        pl.Series("pixel_sha256s", [[f"picture {one}"] for one in picture]), pl.Series("reference_answers", golds)
    )


def _by_joins(questions, match_on):
    """The pairs of sample_ids by the protocol, where every two questions are compared."""
    forms = [sorted({canonical(gold) for gold in golds} - {""}) for golds in questions["reference_answers"].to_list()]
    rows = questions.with_columns(gold=pl.Series(forms, dtype=pl.List(pl.String))).filter(pl.col("gold").list.len() > 0)
    both = rows.join(rows, on=["dataset", "split", "question_key", *match_on], suffix="_donor").filter(
        pl.col("image_id") != pl.col("image_id_donor"),
        pl.col("pixel_sha256s") != pl.col("pixel_sha256s_donor"),
        pl.col("gold").list.set_intersection("gold_donor").list.len() == 0,
    )
    ids = both.select("sample_id", "sample_id_donor")
    digests = [hashlib.sha256("|".join(row).encode()).hexdigest() for row in ids.iter_rows()]
    first = ids.with_columns(digest=pl.Series(digests)).sort("digest").unique("sample_id", keep="first")
    return first.drop("digest").sort("sample_id").rows()


def test_the_pairs_are_those_of_the_protocol_where_images_are_copies_and_golds_are_empty_or_several(manifest, tmp_path):
    plain = read_table(manifest / "manifest.parquet", MANIFEST)
    questions = _with_copies(plain)
    _, pairs, _ = _pair(_written(questions, tmp_path / "questions"), tmp_path / "out", ["modality"])
    expected = _by_joins(questions, ["modality"])
    assert pairs.select("sample_id", "donor_sample_id").rows() == expected
    # Pictures and gold answers both matter here: without them, other pairs would be found.
    for column in ("pixel_sha256s", "reference_answers"):
        assert _by_joins(questions.with_columns(plain[column]), ["modality"]) != expected


def test_a_named_donor_that_shows_the_same_picture_is_refused(manifest, tmp_path):
    questions = _with_copies(read_table(manifest / "manifest.parquet", MANIFEST))
    pictures = dict(questions.select("sample_id", "pixel_sha256s").iter_rows())
    plain = _by_joins(questions.with_columns(pixel_sha256s=pl.concat_list("image_id")), [])
    source, donor = next(pair for pair in plain if pictures[pair[0]] == pictures[pair[1]])
    named = pl.when(pl.col("sample_id") == source).then(pl.lit(donor)).alias("donor_sample_id")
    written = _written(questions.with_columns(named), tmp_path / "questions")
    with pytest.raises(DataError, match="shows the same image"):
        _pair(written, tmp_path / "out", [])


def test_without_a_match_there_is_one_rule(manifest, tmp_path):
    _, pairs, audit = _pair(manifest, tmp_path / "a", [])
    assert audit["rule"].to_list() == ["match on nothing"]
    assert audit["n_pairs"].to_list() == [pairs.height]


def test_donors_named_by_the_data_set_are_one_rule(manifest, tmp_path):
    questions = read_table(manifest / "manifest.parquet", MANIFEST)
    _, pairs, _ = _pair(manifest, tmp_path / "computed", ["modality"])
    source, donor = pairs.row(0)[:2]
    named = pl.when(pl.col("sample_id") == source).then(pl.lit(donor)).alias("donor_sample_id")
    written = _written(questions.with_columns(named), tmp_path / "named")
    summary, pairs, audit = _pair(written, tmp_path / "out", ["modality"])
    assert pairs.select("sample_id", "donor_sample_id").rows() == [(source, donor)]
    assert audit["rule"].to_list() == ["named by the data set"]
    assert summary.endswith("wrote 1 pairs: 1 pairs (named by the data set)")
