"""A study of three questions: its artifacts from the manifest to the tables, without a model.

The data set `far` has a donor for its first question, and a replay of the answer to it.
"""

from pathlib import Path

import polars as pl

from dualread.artifacts.tables import from_rows, write_table
from dualread.schema.columns import FEATURES, GENERATIONS, GRADED, MANIFEST, METRICS, PAIRS, PREDICTIONS
from dualread.stages import build_table, collect_metrics
from dualread.store.manifest import Manifest
from dualread.store.runner import spec_of
from dualread.store.store import Store
from tests.store.entries import publish

SEEDS = (17, 29)
# AUROC of (method, data set) by seed. Means: DualRead .85 and .65 on the OOD mean, which has one member; PSR .7.
AUROC = {
    ("dualread", "slake"): (0.8, 0.9),
    ("dualread", "far"): (0.6, 0.7),
    ("psr", "slake"): (0.7, 0.7),
    ("psr", "far"): (0.5, None),
}
LAYOUT = {
    "study": "small",
    "backbones": [{"name": "tiny", "label": "Tiny", "seeds": list(SEEDS)}],
    "methods": [
        {"name": name, "label": name.upper(), "group": "Ours", "actor": "rlvr", "readers": [name]}
        for name in ("psr", "dualread")
    ],
    "datasets": [{"name": "slake", "label": "SLAKE", "id": True}, {"name": "far", "label": "Far", "id": False}],
}


class SmallStudy:
    """The study in `root`/results; `table` and `paired` are the manifests of its tables."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root / "results" / "store")
        self._results = root / "results" / "small"
        self.manifests = {name: self._manifest(name) for name in ("slake", "far")}
        self.pairs = self._pairs()
        self.metrics: dict[str, Manifest] = {}
        for seed_index, seed in enumerate(SEEDS):
            self._run(seed_index, seed)
        inputs = {f"metrics/{name}": manifest for name, manifest in self.metrics.items()}
        spec = {"ood": ["far"], "ood_ccg": []}
        self.collected = self._publish(
            "collect_metrics", "metrics", self._stage(collect_metrics, spec, inputs), spec, inputs
        )
        spec = {"table": {"module": "reporting.tables.main"}, "layout": LAYOUT}
        inputs = {"metrics": self.collected}
        self.table = self._publish("build_table", "tables/main", self._stage(build_table, spec, inputs), spec, inputs)
        contrasts = self._publish("compare_methods", "contrasts", {"contrasts.parquet": "-"}, {}, inputs)
        csv = "table,backbone,contrast,dataset,split,metric,method,baseline,mean,printed\n"
        csv += "paired,tiny,ours,slake,test,auroc,dualread,psr,0.15000000000000002,+.150\n"
        self.paired = self._publish(
            "build_table",
            "tables/paired",
            {"paired.csv": csv, "paired.tex": "-"},
            {"table": {"module": "reporting.tables.paired"}, "layout": LAYOUT},
            {"contrasts": contrasts},
        )

    def _run(self, k: int, seed: int) -> None:
        spec = {"seed": seed}
        actor = self._publish("train_actor", f"actors/{seed}", {"checkpoint/model.safetensors": f"{seed}"}, spec, {})
        graded = {name: self._graded(name, seed, actor) for name in self.manifests}
        fit = self._publish(
            "fit_readers", f"readers/{seed}/psr", {"reader.safetensors": "psr"}, spec, {"graded": graded["slake"]}
        )
        replay = self._replay(seed, graded["far"])
        above = self._publish(
            "fit_readers", f"readers/{seed}/dualread", {"reader.safetensors": "dr"}, spec, {"parent/before": fit}
        )
        shards = {f"graded/{name}/test/original": artifact for name, artifact in graded.items()}
        shards |= {f"manifest/{name}/test": artifact for name, artifact in self.manifests.items()}
        for method, reader in (("psr", fit), ("dualread", above)):
            predictions = self._predictions(method, seed, reader, {**shards, "features/far/test/original": replay})
            run = f"tiny/rlvr/{seed}/{method}"
            rows = [_estimate(method, seed, name, AUROC[method, name][k]) for name in self.manifests]
            self.metrics[run] = self._publish(
                "compute_metrics",
                f"metrics/{run}",
                lambda out, rows=rows: write_table(out / "metrics.parquet", from_rows(rows, METRICS), METRICS),
                {**spec, "method": method},
                {**shards, "pairs/far/test": self.pairs, "predictions": predictions},
            )

    def _manifest(self, name: str) -> Manifest:
        row = dict.fromkeys(("content_family", "modality", "location", "donor_sample_id"))
        row |= {"sample_id": f"{name}/test/1", "dataset": name, "split": "test", "role": "test", "options": []}
        row |= {"question": "Is the lung clear?", "question_key": "q", "reference_answers": ["yes"]}
        row |= {"answer_type": "closed", "image_files": ["images/a.png"], "image_roles": [], "pixel_sha256s": ["a"]}
        row |= {"image_id": "image-a", "cluster_id": "image-a", "source_row": 0}
        rows = [row]
        if name == "far":
            rows.append({**row, "sample_id": "far/test/2", "reference_answers": ["no"], "image_id": "image-b"})
            rows = [row | {"patient_id": "p"} for row in rows]
        return self._publish("build_manifest", f"manifests/{name}/test", _table(rows, MANIFEST), {"dataset": name}, {})

    def _pairs(self) -> Manifest:
        row = {"sample_id": "far/test/1", "donor_sample_id": "far/test/2", "question_key": "q", "n_candidates": 3}
        row |= {"source_image_id": "image-a", "donor_image_id": "image-b"}
        return self._publish(
            "pair_donors", "pairs/far/test", _table([row], PAIRS), {}, {"manifest": self.manifests["far"]}
        )

    def _replay(self, seed: int, graded: Manifest) -> Manifest:
        row = {"sample_id": "far/test/1", "condition": "original", "sample_index": 0, "row": 0, "n_prompt_tokens": 9}
        row |= {"t_close": 5, "answer_positions": [3, 4], "has_answer_block": True, "n_image_tokens": 4}
        row |= {"token_log_probs": [-0.1], "log_prob_mean_difference": 0.0, "log_prob_max_difference": 2e-6}
        rows = [{**row, "argmax_mismatches": 0}]
        path = f"features/{seed}/far/test/original"
        return self._publish("replay", path, _table(rows, FEATURES), {"seed": seed}, {"graded": graded})

    def _graded(self, name: str, seed: int, actor: Manifest) -> Manifest:
        key = {"sample_id": f"{name}/test/1", "condition": "original", "sample_index": 0, "image_id": "image-a"}
        row = {**key, "prompt_sha256": "p", "n_prompt_tokens": 9, "token_ids": [1], "token_log_probs": [-0.1]}
        row |= {"text": f"<answer>yes, says {seed}</answer>", "finish_reason": "stop"}
        inputs = {"manifest": self.manifests[name], "actor": actor}
        path, spec = f"{seed}/{name}/test/original", {"seed": seed, "dataset": name}
        made = self._publish("generate", f"generations/{path}", _table([row], GENERATIONS), spec, inputs)
        row = {**key, "answer": "yes", "canonical_answer": "yes", "verbalized_confidence": None}
        row |= {"parse_status": "valid", "correct": True}
        inputs = {"generations": made, "manifest": self.manifests[name]}
        return self._publish("grade", f"graded/{path}", _table([row], GRADED), {"dataset": name}, inputs)

    def _predictions(self, method: str, seed: int, reader: Manifest, shards: dict[str, Manifest]) -> Manifest:
        run = {"backbone": "tiny", "actor": "rlvr", "seed": seed, "method": method, "split": "test"}
        run |= {"condition": "original", "score": 1.0, "imputed": False, "confidence": 0.75 if seed == 17 else 0.5}
        rows = [{**run, "sample_id": f"{name}/test/1", "dataset": name} for name in self.manifests]
        path = f"predictions/{seed}/{method}"
        return self._publish(
            "score_answers", path, _table(rows, PREDICTIONS), {"seed": seed}, {**shards, "reader": reader}
        )

    def _stage(self, stage, spec, inputs):
        given = {name: self.store.entry(m.key) for name, m in inputs.items()}
        return lambda out: stage.compute(spec_of(stage.compute, spec, stage.__name__), given, out)

    def _publish(self, stage, output, files, spec, inputs) -> Manifest:
        return publish(self.store, stage, files, spec=spec, inputs=inputs, output=self._results / output)


def _estimate(method: str, seed: int, dataset: str, value: float | None) -> dict:
    run = {"study": "small", "backbone": "tiny", "actor": "rlvr", "seed": seed, "method": method}
    what = {"dataset": dataset, "split": "test", "subset": "all", "metric": "auroc", "n": 104, "n_clusters": 52}
    reason = "one class" if value is None else None
    return {**run, **what, "estimate": value, "low": None, "high": None, "reason": reason}


def _table(rows, schema):
    def write(out: Path) -> None:
        frame: pl.DataFrame = from_rows(rows, schema)
        write_table(out / f"{schema.name}.parquet", frame, schema)

    return write
