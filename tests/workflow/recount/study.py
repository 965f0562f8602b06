"""The files of a finished study, as rows beside each other."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tests.workflow.recount import claims

ANOTHER_IMAGE = {"donor": "donor", "fixed": "donor_fixed_prefix", "shuffled": "shuffled_image"}


@dataclass(frozen=True, kw_only=True)
class Run:
    """A method of one backbone and seed, and whose answers it judges."""

    backbone: str
    actor: str
    seed: int
    method: str


@dataclass(kw_only=True)
class Study:
    """A finished study.

    Attributes:
        results: The folder results/<study>.
        runs: (backbone, method) -> seed -> run.
        in_distribution: The data set that has a split to train on.
        ood: All others.
        paired: Those of the others whose test questions have donor pairs that exchange all images.
    """

    results: Path
    runs: dict[tuple[str, str], dict[int, Run]] = field(default_factory=lambda: defaultdict(dict))
    _read: dict[Any, Any] = field(default_factory=dict)  # what was read or joined once

    def __post_init__(self) -> None:
        for path in sorted((self.results / "predictions").glob("*/*/*/*")):
            backbone, actor, seed, method = path.parts[-4:]
            self.runs[backbone, method][int(seed)] = Run(backbone=backbone, actor=actor, seed=int(seed), method=method)
        names = sorted(path.name for path in (self.results / "manifests").iterdir())
        (self.in_distribution,) = [n for n in names if (self.results / "manifests" / n / "train").exists()]
        self.ood = [name for name in names if name != self.in_distribution]
        pairs = {name: self.results / "pairs" / name / "test/MANIFEST.json" for name in self.ood}
        specs = {name: json.loads(path.read_text())["spec"] for name, path in pairs.items() if path.exists()}
        self.paired = [name for name, spec in specs.items() if spec.get("role") is None]

    @property
    def of_claims(self) -> bool:
        """Whether answers are reports, whose claims have the confidences and labels."""
        return (self.results / "claims").exists()

    @property
    def judged_by(self) -> dict:
        """What the study's settings say of metrics."""
        return json.loads((self.results / "study.json").read_text())["settings"]["metrics"]

    def layout(self, name: str, kind: str = "tables") -> dict:
        """Return what a table or figure says that it shows."""
        return json.loads((self.results / kind / name / "MANIFEST.json").read_text())["spec"]["layout"]

    def printed(self, kind: str, name: str) -> pl.DataFrame:
        """Return the CSV of a table or figure."""
        path = self.results / kind / name / f"{name}.csv"
        columns = pl.read_csv(path, n_rows=0).columns
        texts = {"printed", "reason"} & set(columns)  # never a number
        return pl.read_csv(path, infer_schema_length=None, schema_overrides=dict.fromkeys(texts, pl.String))

    def manifest(self, dataset: str, split: str = "test") -> pl.DataFrame:
        return self._parquet(self.results / "manifests" / dataset / split / "manifest.parquet")

    def pairs(self, dataset: str, split: str = "test") -> pl.DataFrame | None:
        folder = self.results / "pairs" / dataset / split
        return self._parquet(folder / "pairs.parquet") if folder.exists() else None

    def graded(self, run: Run, dataset: str, split: str, condition: str) -> pl.DataFrame:
        return self._parts(self._of_actor("graded", run) / dataset / split / condition, "graded")

    def claims(self, run: Run, dataset: str, split: str, condition: str) -> pl.DataFrame:
        """Return id, question, text, label and shown image of every claim that the actor's own reports make."""
        rows = {row["sample_id"]: row for row in self.manifest(dataset, split).to_dicts()}
        shown = {name: name for name in rows}
        if condition != "original":
            pairs = self.pairs(dataset, split)
            shown = {} if pairs is None else dict(pairs.select("sample_id", "donor_sample_id").iter_rows())
        reports = self._parts(self._of_actor("generations", run) / dataset / split / "original", "generations")
        found = [
            {
                **{"sample_id": f"{name}#{k}", "question": name, "image_id": rows[shown[name]]["image_id"]},
                **{"text": claim, "label": claims.label(claim, rows[shown[name]]["reference_answers"])},
            }
            for name, report in reports.filter(sample_index=0).select("sample_id", "text").iter_rows()
            if name in shown
            for k, claim in enumerate(claims.claims(report))
        ]
        texts = dict.fromkeys(("sample_id", "question", "image_id", "text"), pl.String)
        return pl.DataFrame(found, schema={**texts, "label": pl.Boolean})

    def labeled(self, run: Run, dataset: str, split: str, condition: str) -> pl.DataFrame:
        """Return the claims with a label, on the own image as well, as `graded` returns answers."""
        found, own = (self.claims(run, dataset, split, at).drop_nulls("label") for at in (condition, "original"))
        found = found.join(own, on="sample_id", how="semi")
        return found.rename({"label": "correct", "text": "canonical_answer"})

    def generations(self, run: Run, view: str | None = None) -> pl.DataFrame:
        """Return the completions of the in-distribution test answers, or of a view of them."""
        kind, name = ("generations", None) if view is None else ("views", view)
        folder = self._of_actor(kind, run) / self.in_distribution / "test" / "original"
        return self._parts(folder / name if name else folder, "generations")

    def choices(self, run: Run, view: str) -> pl.DataFrame:
        folder = self._of_actor("views", run) / self.in_distribution / "test" / "original" / view
        return self._parts(folder, "choices")

    def clusters(self, dataset: str, split: str) -> dict[str, int]:
        """Return the cluster of every image id: the rows that share a patient or a picture, also by way of others.

        Clusters are numbered in the order of their first image's name.
        """
        if (key := ("clusters", dataset, split)) not in self._read:
            groups: list[tuple[set[str], set[str]]] = []  # what rows share, and their image ids
            for image, pictures, patient in self.manifest(dataset, split)[
                "image_id", "pixel_sha256s", "patient_id"
            ].rows():
                shared, images = {*pictures, *([patient] if patient else [])}, {image}
                for group in [group for group in groups if group[0] & shared]:
                    groups.remove(group)
                    shared, images = shared | group[0], images | group[1]
                groups.append((shared, images))
            by_name = sorted(sorted(images) for _, images in groups)
            self._read[key] = {image: k for k, images in enumerate(by_name) for image in images}
        return self._read[key]

    def said(self, run: Run, dataset: str, split: str, condition: str) -> pl.DataFrame:
        """Return id, confidence, imputed, correct, canonical answer, image_id and cluster of a shard; maybe no row."""
        if (key := ("said", run, dataset, split, condition)) not in self._read:
            self._read[key] = self._said(run, dataset, split, condition)
        return self._read[key]

    def _said(self, run: Run, dataset: str, split: str, condition: str) -> pl.DataFrame:
        folder = self.results / "predictions" / run.backbone / run.actor / str(run.seed) / run.method
        of_shard = self._parts(folder, "predictions").filter(dataset=dataset, split=split, condition=condition)
        if of_shard.is_empty():
            return of_shard
        grades = (self.labeled if self.of_claims else self.graded)(run, dataset, split, condition)
        joined = of_shard.select("sample_id", "confidence", "imputed").join(
            grades.select("sample_id", "correct", "canonical_answer", "image_id"), on="sample_id", validate="1:1"
        )
        where = f"{run} {dataset}/{split}/{condition}"
        assert len(joined) == len(of_shard) == len(grades), f"{where}: rows without a partner"
        clusters = self.clusters(dataset, split)
        return joined.with_columns(cluster=pl.col("image_id").replace_strict(clusters))

    def answers(self, run: Run, dataset: str, split: str, subset: str) -> pl.DataFrame:
        """Return one row a question of a subset, or a claim, with the question beside the answer."""
        if (key := (run, dataset, split)) not in self._read:
            self._read[key] = self._asked(run, dataset, split)
        joined = self._read[key]
        if subset.startswith("family:"):
            return joined.filter(content_family=subset.removeprefix("family:"))
        return joined if subset == "all" else joined.filter(answer_type=subset)

    def _asked(self, run: Run, dataset: str, split: str) -> pl.DataFrame:
        questions = self.manifest(dataset, split).rename({"sample_id": "question_id"})
        columns = ["question_id", "question_key", "answer_type", "content_family"]
        said = self.said(run, dataset, split, "original")
        report = pl.col("sample_id").str.replace(r"#\d+$", "") if self.of_claims else pl.col("sample_id")
        joined = questions.select(columns).join(said.with_columns(question_id=report), on="question_id", validate="1:m")
        n = len(said) if self.of_claims else len(questions)
        assert len(joined) == n, f"{run} {dataset}/{split}: not every question is answered"
        return joined

    def beside(self, run: Run, dataset: str, split: str, other: str) -> pl.DataFrame:
        """Return own image and another side by side; *_other is of the donor's, fixed or shuffled. Maybe no row."""
        own = self.said(run, dataset, split, "original")
        others = self.said(run, dataset, split, ANOTHER_IMAGE[other])
        if others.is_empty():
            return others
        joined = own.join(others, on="sample_id", validate="1:1", suffix="_other")
        assert len(joined) == len(others)
        return joined

    def replicates(self, run: Run, dataset: str, split: str, metric: str) -> np.ndarray:
        """Return the stored values of a metric in every resample."""
        from safetensors import safe_open

        path = self._of_actor("metrics", run) / run.method / "replicates.safetensors"
        with safe_open(path, framework="numpy") as file:
            return file.get_tensor(f"{dataset}/{split}/{metric}")

    def floors(self, backbone: str, method: str, dataset: str, subset: str) -> dict[int, float | None]:
        """Return the noise floor of the ECE that the collected metrics hold, of every seed; none of a mean."""
        rows = self._parquet(self.results / "metrics" / "metrics.parquet").filter(
            metric="ece15_noise_floor", backbone=backbone, method=method, dataset=dataset, subset=subset, split="test"
        )
        return dict(rows.select("seed", "estimate").iter_rows())

    def _parquet(self, path: Path) -> pl.DataFrame:
        if path not in self._read:
            self._read[path] = pl.read_parquet(path)
        return self._read[path]

    def _parts(self, folder: Path, name: str) -> pl.DataFrame:
        """Read <name>.parquet or, where there are several, <name>-00000.parquet and so on."""
        return pl.concat([self._parquet(path) for path in sorted(folder.glob(f"{name}*.parquet"))])

    def _of_actor(self, kind: str, run: Run) -> Path:
        return self.results / kind / run.backbone / run.actor / str(run.seed)
