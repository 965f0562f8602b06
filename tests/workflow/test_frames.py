"""Questions about several images, and patients with several: workflow/studies/frames.yaml over the micro study.

Beside the frames, a clinic's table asks about 36 drawn images of 12 patients, who have between one and six.
"""

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

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


@pytest.mark.parametrize("dataset", ["medframeqa", "follow_ups"])
def test_answers_are_about_the_images_of_the_donors(frames, dataset):
    """Which donors these are, is judged below."""
    pairs = pl.read_parquet(frames / f"pairs/{dataset}/test/pairs.parquet")
    shown = pl.read_parquet(frames / f"generations/{RUN}/{dataset}/test/donor/generations.parquet")
    assert pairs.height > 5
    assert dict(shown.select("sample_id", "image_id").iter_rows()) == dict(
        pairs.select("sample_id", "donor_image_id").iter_rows()
    )


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
