"""How many questions and images a study has.

The numbers come from the study's manifests if these exist, else from the config or the loader's declarations, else from
the rows that the loader finds in the data set's folder.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.data.datasets.base import load
from dualread.data.questions.audit import refuse_broken
from dualread.errors import ConfigError

_QUESTIONS_PER_IMAGE = 8  # default of a phantom hospital


@dataclass(frozen=True, kw_only=True)
class SplitSize:
    """The numbers of questions and of distinct images of one split, and the source of these numbers.

    `most_images` is how many the question with the most images shows.
    """

    questions: int
    images: int
    source: str
    most_images: int = 1


class Sizes:
    """The sizes of a study's data sets; `results` may hold manifests already, and errors name the study's `files`."""

    def __init__(self, config: Mapping[str, Any], results: Path, *, root: Path, files: Sequence[Path] = ()) -> None:
        self._config, self._results, self._root, self._files = config, results, root, files
        self._known: dict[tuple[str, str], SplitSize] = {}

    def of(self, dataset: str, split: str) -> SplitSize:
        """Return the size of one split."""
        if (dataset, split) not in self._known:
            self._known[dataset, split] = self._count(dataset, split)
        return self._known[dataset, split]

    def asked(self, shard: tuple[str, ...], *, donors: bool) -> int:
        """Return how many questions a shard, or a view of it, has; for donors not yet paired, an upper bound."""
        dataset, split = shard[:2]
        pairs = self._results / "pairs" / dataset / split / "pairs.parquet"
        if donors and pairs.exists():
            return pl.scan_parquet(pairs).select(pl.len()).collect().item()
        return self.of(dataset, split).questions

    def _count(self, dataset: str, split: str) -> SplitSize:
        manifest = self._results / "manifests" / dataset / split / "manifest.parquet"
        if manifest.exists():
            shown = pl.scan_parquet(manifest).select("image_id", "image_files").collect()
            most, n_images = max(shown["image_files"].list.len(), default=1), shown["image_id"].n_unique()
            return SplitSize(questions=len(shown), images=n_images, source="its manifest", most_images=most)
        entry = self._config["datasets"][dataset]
        select, source = entry.get("select", {}), f"the loader {entry['loader']}"
        types, folder = select.get("answer_types", ("open", "closed")), entry["source"].get("folder")
        drawn = select.get("questions")  # exact, because drawing fails if the split has fewer
        drawn = sum(drawn.values()) if isinstance(drawn, Mapping) else drawn
        there = images = drawn
        most = plugins.declared("datasets", entry["loader"], "MOST_SHOWN") or 1
        most = max(most, len(entry.get("settings", {}).get("image_roles") or ()))
        if phantom := entry["source"].get("phantom"):
            hospital, source = self._config["phantoms"][phantom], f"phantoms.{phantom}"
            images = hospital["images"][split]
            there = images * hospital.get("questions_per_image", _QUESTIONS_PER_IMAGE)
        elif declared := (plugins.declared("datasets", entry["loader"], "SIZES") or {}).get(split):
            images, there = declared["images"], sum(declared[kind] for kind in types)
        elif folder and (self._root / folder).is_dir():  # where a part is drawn, for how many images a question shows
            loader = plugins.load("datasets", entry["loader"])
            loaded = load(loader, self._root / folder, split, entry.get("settings", {}))
            refuse_broken(loaded, {})  # here rather than in the first job; images are looked at there
            rows = [row for row in loaded.rows if row.answer_type in types]
            there, images, source = len(rows), len({row.image_name for row in rows}), f"the rows in {folder}"
            most = max(len(row.images) for row in rows)
        if there is None or images is None:
            missing = f", and the folder {folder} does not exist" if folder else ""
            files = ["--configfile", *map(str, self._files)] if self._files else []
            command = ["snakemake", "--cores", "1", str(manifest.parent / "MANIFEST.json"), *files]
            raise ConfigError(
                f"datasets.{dataset}: the number of questions in {split} is not known: {source} declares no SIZES,"
                f" and `select` gives no number{missing}. Put the files there, set select.questions, or make the"
                f" manifest first: {shlex.join(command)}"
            )
        questions = drawn or there
        source = "select" if drawn else source
        return SplitSize(questions=questions, images=min(questions, images), source=source, most_images=most)
