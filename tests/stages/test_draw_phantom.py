import io
from typing import Any

import polars as pl
import pytest

from dualread.data.datasets import slake
from dualread.data.datasets.base import load
from dualread.errors import ConfigError
from dualread.stages.draw_phantom import compute
from tests import specs


def _files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


_DRAWN: dict[str, Any] = {"images": {"train": 3, "validation": 2, "test": 2}}


def _draw(folder, **changes):
    folder.mkdir()
    summary = compute(specs.phantom(**_DRAWN | changes), {}, folder)
    return summary, _files(folder)


def test_files_are_byte_identical_twice(tmp_path):
    summary, files = _draw(tmp_path / "a")
    assert summary == "read nothing, wrote 10 files: 3 train, 2 validation, 2 test images of 32 x 32 pixels"
    assert len(files) == 11  # and the truth
    assert files == _draw(tmp_path / "b")[1]
    assert (
        "test.json" in _draw(tmp_path / "c", images={"test": 1}, questions_per_image=16)[1]
    )  # the most that there are


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"style": {"colour": 1}}, r"phantoms\.hospital\.style\.colour: no such setting"),
        ({"style": {"modalities": {"pet": 1}}}, r"style\.modalities\.pet: no such setting\. Known: ct, mri, x-ray"),
        ({"writer": "pmc_vqa", "images": {"train": 3}}, r"images: the format has no \['train'\]\. Its splits: test"),
        ({"writer": "x"}, r"writers: no plugin named 'x'\. Known: .*slake"),
        ({"questions_per_image": 17}, r"questions_per_image: 17, expected 1 to 16"),
    ],
)
def test_settings_out_of_range_are_refused(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        _draw(tmp_path / "a", **changes)


def test_the_truth_names_every_image_as_the_loader_does_and_no_official_file_tells_it(tmp_path):
    _, files = _draw(tmp_path / "a", images={"test": 30}, style={"hazy": 0.5})
    truth = pl.read_parquet(io.BytesIO(files["truth.parquet"]))
    loaded = {row.image_name for row in load(slake, tmp_path / "a", "test", {}).rows}
    assert set(truth["image_id"]) == loaded
    assert set(truth["haze"]) == {0.0, 0.9}
    assert b"haz" not in files["test.json"]


def test_a_format_without_known_names_has_no_truth(tmp_path):
    _, files = _draw(tmp_path / "a", writer="pmc_vqa", images={"test": 2}, questions_per_image=1)
    assert "test_clean.csv" in files
    assert "truth.parquet" not in files
