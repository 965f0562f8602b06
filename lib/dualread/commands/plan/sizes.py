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
from dualread.data.questions.audit import refuse_broken
from dualread.errors import ConfigError

_QUESTIONS_PER_IMAGE = 8  # default of a phantom hospital


@dataclass(frozen=True, kw_only=True)
class SplitSize:
    """The numbers of questions and of distinct images of one split, and the source of these numbers."""

    questions: int
    images: int
    source: str


class Sizes:
    """The sizes of a study's data sets."""

    def __init__(self, config: Mapping[str, Any], results: Path, *, root: Path, files: Sequence[Path] = ()) -> None:
        """Set where to look for sizes.

        Args:
            config: A validated config.
            results: The folder results/<study>, which may hold manifests already.
            root: The folder of the repository, from which relative folders start.
            files: The config files of the study, for commands in error messages.
        """
        self._config = config
        self._results = results
        self._root = root
        self._files = files
        self._known: dict[tuple[str, str], SplitSize] = {}

    def of(self, dataset: str, split: str) -> SplitSize:
        """Return the size of one split.

        Raises:
            ConfigError: The number of questions is not known.
            DataError: The data set's files cannot be read, or hold rows that cannot be asked.
        """
        if (dataset, split) not in self._known:
            self._known[dataset, split] = self._find(dataset, split)
        return self._known[dataset, split]

    def asked(self, shard: tuple[str, ...], *, donors: bool) -> int:
        """Return how many questions a shard, or a view of it, has; for donors not yet paired, an upper bound."""
        dataset, split = shard[:2]
        pairs = self._results / "pairs" / dataset / split / "pairs.parquet"
        if donors and pairs.exists():
            return pl.scan_parquet(pairs).select(pl.len()).collect().item()
        return self.of(dataset, split).questions

    def _find(self, dataset: str, split: str) -> SplitSize:
        manifest = self._results / "manifests" / dataset / split / "manifest.parquet"
        if manifest.exists():
            counts = pl.scan_parquet(manifest).select(n=pl.len(), images=pl.col("image_id").n_unique()).collect()
            return SplitSize(questions=counts["n"][0], images=counts["images"][0], source="its manifest")
        entry = self._config["datasets"][dataset]
        select, source = entry.get("select", {}), f"the loader {entry['loader']}"
        drawn = select.get("questions")  # exact, because drawing fails if the split has fewer
        drawn = sum(drawn.values()) if isinstance(drawn, Mapping) else drawn
        there = images = drawn
        if phantom := entry["source"].get("phantom"):
            hospital, source = self._config["phantoms"][phantom], f"phantoms.{phantom}"
            images = hospital["images"][split]
            there = images * hospital.get("questions_per_image", _QUESTIONS_PER_IMAGE)
        elif declared := (plugins.declared("datasets", entry["loader"], "SIZES") or {}).get(split):
            images = declared["images"]
            there = sum(declared[kind] for kind in select.get("answer_types", ("open", "closed")))
        elif drawn is None and (folder := self._folder(entry)) is not None:
            types, source = select.get("answer_types", ("open", "closed")), f"the rows in {entry['source']['folder']}"
            loaded = plugins.load("datasets", entry["loader"]).load_rows(folder, split, entry.get("settings", {}))
            refuse_broken(loaded, {})  # here rather than in the first job; images are looked at there
            rows = [row for row in loaded.rows if row.answer_type in types]
            there, images = len(rows), len({row.image_name for row in rows})
        if there is None or images is None:
            missing = (
                f", and the folder {entry['source']['folder']} does not exist" if "folder" in entry["source"] else ""
            )
            raise ConfigError(
                f"datasets.{dataset}: the number of questions in {split} is not known: {source} declares no SIZES,"
                f" and `select` gives no number{missing}. Put the files there, set select.questions, or make the"
                f" manifest first: {self._command(manifest.parent / 'MANIFEST.json')}"
            )
        questions = drawn or there
        return SplitSize(questions=questions, images=min(questions, images), source="select" if drawn else source)

    def _folder(self, entry: Mapping[str, Any]) -> Path | None:
        """Return the folder of a data set's official files, or None if it does not exist."""
        folder = self._root / entry["source"]["folder"] if "folder" in entry["source"] else None
        return folder if folder is not None and folder.is_dir() else None

    def _command(self, target: Path) -> str:
        """Return the command that makes `target` in this study."""
        files = ["--configfile", *map(str, self._files)] if self._files else []
        return shlex.join(["snakemake", "--cores", "1", str(target), *files])
