"""ReXGradient-160K (Zhang et al. 2025): reports on chest X-rays; metadata/*_metadata_view_position.json and deid_png/.

Each file is an object that maps ids to studies, with the texts Findings and Impression, and the lists ImagePath and
ImageViewPosition. Paths are relative to metadata/ ("../deid_png/<patient>/<accession>/studies/..."). To unpack the
images, run `cat deid_png.part* | tar --zstd -xf -` beside metadata/. Sections that are missing are null, blank, or the
word None.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread import limits
from dualread.data.datasets import base
from dualread.data.datasets._reports import report_row, reportable, shown
from dualread.data.datasets.settings import ViewedReportSettings

HUB_FILES = {
    "train": ("metadata/train_metadata_view_position.json",),
    "validation": ("metadata/valid_metadata_view_position.json",),
    "test": ("metadata/test_metadata_view_position.json",),
}
MOST_SHOWN = 20
DOWNLOAD_GB = 150  # the images of all splits
TERMS = (
    "Non-commercial research only. Accept the terms on huggingface.co/datasets/rajpurkarlab/ReXGradient-160K; the token"
    " is that of `hf auth login` or HF_TOKEN. Unpack the images (ten parts of 15 GB) beside metadata/"
    " (cat deid_png.part* | tar --zstd -xf -). Zhang et al. 2025 (arXiv:2505.00228)."
)

_FIELDS = {
    "Findings": base.MAYBE_TEXT,
    "Impression": base.MAYBE_TEXT,
    "ImagePath": base.Allowed(
        lambda paths: (
            base.is_texts(paths) and not any(limits.leaves_folder(path.removeprefix("../")) for path in paths)
        ),
        "a list of paths inside ../deid_png",
    ),
    "ImageViewPosition": base.Allowed(
        lambda value: value is None or isinstance(value, list), "a list of texts or nulls"
    ),
}


class Settings(ViewedReportSettings):
    """What is asked, which sections are the reference, and which views are shown."""


def load_rows(folder: Path, split: str, settings: Settings) -> base.Loaded:
    """Return a row per study of `split` that has images and a reference report, in the order of the file."""
    file = folder / HUB_FILES[split][0]
    records = base.read_json(file, dict, "metadata/*.json and deid_png/")
    base.check_records(((file, key, record) for key, record in records.items()), _FIELDS)
    rows = [_row(folder.absolute(), k, key, record, settings) for k, (key, record) in enumerate(records.items())]
    kept, audit = reportable(rows, settings.sections)
    return base.Loaded(file=file, rows=kept, audit=audit)


def _row(root: Path, k: int, key: str, record: Mapping[str, Any], settings: Settings) -> base.Row:
    paths = [path.removeprefix("../") for path in record["ImagePath"]]
    positions = [str(position or "") for position in record["ImageViewPosition"] or []]
    positions += [""] * (len(paths) - len(positions))
    images = zip(positions, (base.Picture(root / path, path) for path in paths), strict=False)
    texts = {section: record[section.capitalize()] for section in ("findings", "impression")}
    report = {section: [] if (text or "").strip().lower() == "none" else [text] for section, text in texts.items()}
    patient = paths[0].split("/")[1] if paths and paths[0].startswith("deid_png/") else None
    return report_row(settings, key, k, report, shown(images, settings.views), patient)
