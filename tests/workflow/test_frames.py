"""Questions about several images, from their files to the tables: workflow/studies/frames.yaml over the micro study."""

import polars as pl
import pytest

from dualread.apps.score.scorer import Scorer
from dualread.artifacts.tensors import read_tensors
from tests.workflow.faults import STUDY, copy

pytestmark = pytest.mark.rest

RUN = "qwen3-vl-tiny/rlvr/17"
TABLES = ("tables/main.tex", "tables/data.tex")


@pytest.fixture(scope="module")
def frames(micro, tmp_path_factory):
    checkout = copy(micro, tmp_path_factory.mktemp("frames") / "checkout")
    done = checkout.snakemake(*TABLES, study=f"{STUDY} workflow/studies/frames.yaml")
    assert done.returncode == 0, done.text
    assert "train_actor" not in done.computed()
    return checkout.folder / "results/frames"


def test_a_donor_lends_all_its_frames(frames):
    manifest = pl.read_parquet(frames / "manifests/medframeqa/test/manifest.parquet")
    pairs = pl.read_parquet(frames / "pairs/medframeqa/test/pairs.parquet")
    assert sorted(set(manifest["image_files"].list.len())) == [2, 3]
    lists = dict(manifest.select("image_id", "image_files").iter_rows())
    assert pairs.height > 5
    for source, donor in pairs.select("source_image_id", "donor_image_id").iter_rows():
        assert len(lists[source]) == len(lists[donor])
        assert set(lists[source]).isdisjoint(lists[donor])
    shown = pl.read_parquet(frames / f"generations/{RUN}/medframeqa/test/donor/generations.parquet")
    assert dict(shown.select("sample_id", "image_id").iter_rows()) == dict(
        pairs.select("sample_id", "donor_image_id").iter_rows()
    )


def test_states_are_of_the_tokens_of_all_frames(frames):
    folder = frames / f"features/{RUN}/medframeqa/test/original"
    manifest = pl.read_parquet(frames / "manifests/medframeqa/test/manifest.parquet").select("sample_id", "image_files")
    rows = pl.read_parquet(folder / "features.parquet").join(manifest, on="sample_id")
    assert (rows["n_image_tokens"] == 16 * rows["image_files"].list.len()).all()
    assert len(read_tensors(folder / "features.safetensors")["h_evid"]) == manifest.height


def test_the_tables_count_videos_and_have_both_data_sets(frames):
    cells = pl.read_csv(frames / "tables/data/data.csv").filter(dataset="medframeqa", split="test")
    counts = dict(cells.select("column", "value").iter_rows())
    assert (
        counts["clusters"]
        == counts["images"]
        == str(pl.read_parquet(frames / "manifests/medframeqa/test/manifest.parquet")["cluster_id"].n_unique())
    )
    metrics = pl.read_parquet(frames / f"metrics/{RUN}/dualread/metrics.parquet")
    metrics = metrics.filter(subset="all", metric="brier")
    assert set(metrics["dataset"]) >= {"slake", "medframeqa"}
    assert metrics["estimate"].is_not_null().all()


def test_a_reader_of_single_images_refuses_two(frames):
    scorer = Scorer.load(str(frames / f"readers/{RUN}/dualread"), str(frames / f"actors/{RUN}"))
    files = [str(path) for path in sorted((frames / "manifests/medframeqa/test/images").iterdir())[:2]]
    assert scorer(files[0], "Where is the lesion?").donor is None
    with pytest.raises(Exception, match="2 images: expected one"):
        scorer(files, "Where is the lesion?")
