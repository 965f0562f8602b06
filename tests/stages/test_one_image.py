"""After an edit of one image, generation and replay compute the batches with its questions, and make the same bytes."""

import shutil

import polars as pl
import pytest
from PIL import Image

from dualread.artifacts.tables import read_table, write_table
from dualread.digests import MANIFEST_NAME
from dualread.schema.columns import MANIFEST
from dualread.store.batches import batch_files
from dualread.store.job import Entry
from dualread.store.manifest import read_manifest
from dualread.store.runner import Runner
from dualread.store.store import Store
from tests import specs
from tests.architectures import second_in_rest
from tests.specs import changed
from tests.stages.shards import seal

pytestmark = second_in_rest
GREEDY, SAMPLES = {}, {"temperature": 1.0, "n_samples": 2}


@pytest.fixture
def study(tiny, hospital, tmp_path, monkeypatch):
    """Inputs below results/, and a function that makes answers and states from the manifest `name` in a store."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny.checkpoint, "results/actor/checkpoint")
    shutil.copytree(hospital["manifest"], "results/manifest")
    shutil.copytree(specs.facts(), "results/facts")
    for name in ("actor", "manifest", "facts"):
        seal(tmp_path / "results" / name)

    def make(manifest="manifest", store="store", *, by_image=True, **decoding):
        shard, kept = specs.shard(decoding=specs.decoding(**decoding)), Store(tmp_path / store)
        inputs = {name: tmp_path / "results" / name / MANIFEST_NAME for name in ("actor", "facts", manifest)}
        inputs["manifest"] = inputs.pop(manifest)
        generate = specs.generate(shard)
        engine = {"batch_size": 4, "by_image": by_image}
        generate = changed(generate, engine=generate.engine.model_copy(update={"settings": engine}))
        files, summaries = {}, {}
        for stage, spec in (("generate", generate), ("replay", specs.replay(shard))):
            output = tmp_path / "results" / store / manifest / stage
            Runner(stage, kept).run([Entry(spec=spec.to_spec(), inputs=inputs, output=output)])
            made = read_manifest(output / MANIFEST_NAME)
            files[stage], summaries[stage] = made.files, kept.record(made.key)["batches"]
            inputs["generations"] = output / MANIFEST_NAME
        return files, summaries

    return make


def edited(folder, name, change):
    """Write results/`name`, a manifest in which `change` has edited the rows of one image."""
    shutil.copytree(folder / "results/manifest", folder / "results" / name)
    path = folder / "results" / name / "manifest.parquet"
    path.with_name(MANIFEST_NAME).unlink()
    write_table(path, change(read_table(path, MANIFEST), path.parent), MANIFEST)
    return seal(path.parent)


def another_picture(rows, folder):
    """Replace the picture of the second image, which keeps its name."""
    name = rows["image_id"].unique().sort()[1]
    file = rows.filter(pl.col("image_id") == name)["image_files"][0][0]
    Image.open(folder / file).transpose(Image.Transpose.FLIP_TOP_BOTTOM).save(folder / "images/edited.png")
    edited = pl.lit(["images/edited.png"])
    return rows.with_columns(image_files=pl.when(pl.col("image_id") == name).then(edited).otherwise("image_files"))


def another_gold_answer(rows, folder):
    return rows.with_columns(reference_answers=pl.lit(["something else"]))


def n_kept(tmp_path, name="store"):
    return len(batch_files(Store(tmp_path / name)))


# 16 questions, four about each image, in batches of four completions. A question is asked about all four images, so a
# batch of prompts of one length has one question about each.
@pytest.mark.parametrize(
    ("decoding", "by_image", "generated", "replayed"),
    [(GREEDY, True, (4, 1), (4, 1)), (SAMPLES, True, (8, 2), (8, 2)), (GREEDY, False, (4, 4), (4, 1))],
    ids=["greedy", "samples", "by length"],
)
def test_another_picture_computes_the_batches_with_its_questions(
    study, tmp_path, capsys, decoding, by_image, generated, replayed
):
    _, before = study(by_image=by_image, **decoding)
    assert (len(before["generate"]), len(before["replay"])) == (generated[0], replayed[0])
    edited(tmp_path, "edited", another_picture)
    capsys.readouterr()
    files, names = study("edited", by_image=by_image, **decoding)
    printed = capsys.readouterr().err
    for stage, (n, n_computed) in (("generate", generated), ("replay", replayed)):
        assert len(set(names[stage]) - set(before[stage])) == n_computed
        assert n == n_computed or f"; {n - n_computed} of {n} batches were there\n" in printed
    nothing, _ = study("edited", "another store", by_image=by_image, **decoding)
    assert files == nothing  # the digest of every file


def test_what_no_prompt_shows_computes_nothing(study, tmp_path):
    files, before = study()
    n = n_kept(tmp_path)
    edited(tmp_path, "edited", another_gold_answer)
    again, names = study("edited")
    assert (again, names, n_kept(tmp_path)) == (files, before, n)


def test_a_damaged_batch_is_computed_again(study, tmp_path):
    files, _ = study()
    for file in batch_files(Store(tmp_path / "store")):
        file.chmod(0o644)
        content = bytearray(file.read_bytes())
        content[-1] ^= 1  # of the last tensor, or of the header where there is none
        file.write_bytes(content)
    n = n_kept(tmp_path)
    edited(tmp_path, "edited", another_gold_answer)
    assert study("edited")[0] == files
    assert n_kept(tmp_path) == n
