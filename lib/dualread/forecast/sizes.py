"""How many questions and images a study has: from manifests where they are made, else from what the config says."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.errors import ConfigError

_QUESTIONS_PER_IMAGE = 8  # of a phantom hospital, where its entry does not say


@dataclass(frozen=True, kw_only=True)
class Size:
    """Questions and distinct images of one split, and what says so."""

    questions: int
    images: int
    source: str


class Sizes:
    """The sizes of a study's data sets."""

    def __init__(self, config: Mapping[str, Any], results: Path) -> None:
        """Take a checked config, and the folder results/<study>, where manifests would be."""
        self._config = config
        self._results = results
        self._known: dict[tuple[str, str], Size] = {}

    def of(self, dataset: str, split: str) -> Size:
        """Return the size of one split.

        Raises:
            ConfigError: Nothing says how many questions it has.
        """
        if (dataset, split) not in self._known:
            self._known[dataset, split] = self._find(dataset, split)
        return self._known[dataset, split]

    def asked(self, shard: tuple[str, ...], *, donors: bool) -> int:
        """Return how many questions a shard, or a view of it, has; of donors no more than these while unpaired."""
        dataset, split = shard[:2]
        pairs = self._results / "pairs" / dataset / split / "pairs.parquet"
        if donors and pairs.exists():
            return pl.scan_parquet(pairs).select(pl.len()).collect().item()
        return self.of(dataset, split).questions

    def _find(self, dataset: str, split: str) -> Size:
        manifest = self._results / "manifests" / dataset / split / "manifest.parquet"
        if manifest.exists():
            counts = pl.scan_parquet(manifest).select(n=pl.len(), images=pl.col("image_id").n_unique()).collect()
            return Size(questions=counts["n"][0], images=counts["images"][0], source="its manifest")
        entry = self._config["datasets"][dataset]
        select, source = entry.get("select", {}), f"the loader {entry['loader']}"
        if phantom := entry["source"].get("phantom"):
            hospital, source = self._config["phantoms"][phantom], f"phantoms.{phantom}"
            images = hospital["images"][split]
            there = images * hospital.get("questions_per_image", _QUESTIONS_PER_IMAGE)
        elif declared := (plugins.declared("datasets", entry["loader"], "SIZES") or {}).get(split):
            images = declared["images"]
            there = sum(declared[kind] for kind in select.get("answer_types", ("open", "closed")))
        elif "questions" in select:
            there = images = math.inf
        else:
            raise ConfigError(
                f"datasets.{dataset}: nothing says how many questions {split} has: {source} declares no SIZES, and"
                f" `select` no questions. Make the manifest first: snakemake {manifest.parent}/MANIFEST.json"
            )
        if drawn := select.get("questions"):
            there, source = min(there, sum(drawn.values()) if isinstance(drawn, Mapping) else drawn), "select"
        return Size(questions=int(there), images=int(min(there, images)), source=source)
