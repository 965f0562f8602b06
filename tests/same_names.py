"""Users' own data sets, read by the loader `table`, in which different images have the same name."""

import json
from pathlib import Path

from dualread.stages import build_manifest
from tests import specs
from tests.tiny import image

QUESTIONS = ("Is this a CT scan?", "What is the size of the lesion?", "Where is it?")


def table(folder: Path, *, split: str, pictures: dict[str, int], image_ids: dict[str, str] | None = None) -> None:
    """Add a split to the table in `folder`: every question about every picture.

    Args:
        folder: Folder of the table; created if it does not exist.
        split: train, validation or test.
        pictures: {path in the folder: seed of the pixels}.
        image_ids: {path in the folder: value of the column `image_id`}; None leaves the column out.
    """
    folder.mkdir(exist_ok=True)
    rows = []
    for path, seed in pictures.items():
        (folder / path).parent.mkdir(exist_ok=True)
        image(seed).save(folder / path)
        named = {} if image_ids is None else {"image_id": image_ids[path]}
        rows += [{"question": text, "reference_answers": ["yes"], "image": path, **named} for text in QUESTIONS]
    (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def manifest(folder: Path, out: Path, *, dataset: str, split: str) -> Path:
    """Build the manifest of a split of the table in `folder`."""
    out.mkdir(parents=True)
    build_manifest.compute(specs.manifest("table", dataset=dataset, split=split), {"source": folder}, out)
    return out


def two_data_sets(folder: Path) -> dict[tuple[str, str], Path]:
    """Return {(data set, split): manifest} of two data sets that both have a 0.png and a 1.png."""
    manifests = {}
    for name, seeds in {"mine": (0, 1), "yours": (2, 3)}.items():
        table(folder / name, split="test", pictures={"0.png": seeds[0], "1.png": seeds[1]})
        manifests[name, "test"] = manifest(folder / name, folder / f"{name}-test", dataset=name, split="test")
    return manifests


def two_splits(folder: Path) -> dict[tuple[str, str], Path]:
    """Return {(data set, split): manifest} of one data set in which each split counts its images from 0."""
    manifests = {}
    for split, seeds in {"validation": (0, 1), "test": (2, 3)}.items():
        paths = {f"{split}/{i}.png": seed for i, seed in enumerate(seeds)}
        table(folder / "mine", split=split, pictures=paths, image_ids={path: Path(path).name for path in paths})
        manifests["mine", split] = manifest(folder / "mine", folder / f"mine-{split}", dataset="mine", split=split)
    return manifests
