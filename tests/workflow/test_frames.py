"""Questions about several images, and patients with several: workflow/studies/frames.yaml over the micro study.

Beside the frames, a clinic's table asks about 36 drawn images of 12 patients, who have between one and six.
"""

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dualread.apps.score.scorer import Scorer
from dualread.artifacts.tensors import read_tensors
from tests.workflow.faults import STUDY, copy
from tests.workflow.recount import data_table, donors, floors, interval_tables
from tests.workflow.recount.judge import of_points
from tests.workflow.recount.study import Study
from tests.workflow.recount.values import Values

pytestmark = pytest.mark.rest

RUN = "qwen3-vl-tiny/rlvr/17"
TABLES = tuple(f"tables/{name}.tex" for name in ("main", "data", "intervals", "significance"))
CLINIC = """
only: {datasets: [slake, medframeqa, follow_ups, clinic]}
datasets:
  clinic:
    {label: Clinic, loader: table, source: {folder: clinic}, splits: [test], roles: {test: ood}, seed: 0,
     pairing: {splits: [test], match_on: []}, prompt: shared}
tables: {intervals: {}, significance: {method: dualread}}
"""
GOLDS = {"Which organ is shown in the image?": ("Liver", "Brain"), "Is there a lesion in the image?": ("No", "Yes")}


def write_clinic(folder: Path) -> None:
    """Write a table of 72 questions about 36 images; a patient's images are alike, as are the answers about them."""
    folder.mkdir()
    stream, patients = np.random.default_rng(5), np.repeat(np.arange(12), [1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 4, 6])
    across, down = np.mgrid[:64, :64]
    with (folder / "test.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(["id", "question", "reference_answers", "answer_type", "image", "group"])
        for k, patient in enumerate(patients):
            (x, y), width = stream.integers(10, 54, 2), stream.integers(4, 14)
            spot = 200 * np.exp(-((across - x) ** 2 + (down - y) ** 2) / width**2)
            Image.fromarray((spot + 4 * patient).clip(0, 255).astype(np.uint8)).save(folder / f"{k}.png")
            for name, golds in GOLDS.items():
                gold = golds[(patient + (stream.random() < 0.2)) % 2]
                rows.writerow(
                    [
                        f"{k}{name[0]}",
                        name,
                        gold,
                        "open" if name[0] == "W" else "closed",
                        f"{k}.png",
                        f"Müller {patient}",
                    ]
                )


@pytest.fixture(scope="module")
def frames(micro, tmp_path_factory):
    checkout = copy(micro, tmp_path_factory.mktemp("frames") / "checkout")
    write_clinic(checkout.folder / "clinic")
    (checkout.folder / "clinic.yaml").write_text(CLINIC)
    done = checkout.snakemake(*TABLES, study=f"{STUDY} workflow/studies/frames.yaml clinic.yaml")
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


def test_of_follow_ups_the_current_image_alone_is_exchanged(frames):
    manifest = pl.read_parquet(frames / "manifests/follow_ups/test/manifest.parquet")
    pairs = pl.read_parquet(frames / "pairs/follow_ups/test/pairs.parquet")
    files = dict(manifest.select("sample_id", "image_files").iter_rows())
    assert pairs.height > 10
    for source, donor in pairs.select("sample_id", "donor_sample_id").iter_rows():
        assert [own == lent for own, lent in zip(files[source], files[donor], strict=True)] == [True, False]
    shown = pl.read_parquet(frames / f"generations/{RUN}/follow_ups/test/donor/generations.parquet")
    assert dict(shown.select("sample_id", "image_id").iter_rows()) == dict(
        pairs.select("sample_id", "donor_image_id").iter_rows()
    )
    metrics = pl.read_parquet(frames / f"metrics/{RUN}/dualread/metrics.parquet").filter(dataset="follow_ups")
    (vrs,) = metrics.filter(subset="all", metric="vrs").to_dicts()
    assert vrs["n"] == pairs.height
    assert vrs["low"] < vrs["estimate"] < vrs["high"]
    captions = {name: (frames / f"tables/{name}/{name}.tex").read_text() for name in ("intervals", "main")}
    assert captions["intervals"].count("On Follow-ups, donors exchange the current image alone.") == 1
    assert "donors exchange" not in captions["main"]  # its pairs are of SLAKE, and of all that exchange all images


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


def test_every_cell_agrees_where_patients_have_several_images(frames):
    study = Study(results=frames)
    values = Values(study=study)
    clusters = study.clusters("clinic", "test")
    assert (len(clusters), len(set(clusters.values()))) == (36, 12)
    found = [*donors.differences(study), *data_table.differences(study), *of_points("main", values)]
    found += floors.differences(values)
    for table in ("intervals", "significance"):
        found += interval_tables.differences(table, interval_tables.Intervals(values=values))
    assert found == []


def test_captions_name_what_is_resampled(frames):
    captions = (frames / "tables/intervals/intervals.tex").read_text()
    assert "over other images or patients, for these seeds" in captions
    assert "Resampled are images of SLAKE-test; patients of MedFrameQA, Follow-ups, Clinic." in captions
    assert "& Images & Patients &" in (frames / "tables/data/data.tex").read_text()


def test_a_computation_by_image_would_be_noticed(frames):
    study = Study(results=frames)
    study._read["clusters", "clinic", "test"] = {image: k for k, image in enumerate(study.clusters("clinic", "test"))}
    values = Values(study=study)
    found = interval_tables.differences("intervals", interval_tables.Intervals(values=values))
    assert {line.split("/")[1] for line in found} >= {"clinic"}
