"""The cost of 10,000, 100,000, and 1,000,000 questions in every step that handles their rows, without the models.

    python benchmarks/rows.py                   minutes
    python benchmarks/rows.py 1000 10000        other sizes
    python benchmarks/rows.py --replicates 10000

There are ten questions per image, each question is asked about twenty images, and there are two conditions. The steps
are the stages themselves, except the first three (build_manifest without its images) and the fifth. Each runs in a
process of its own on one thread. The numbers are CPU seconds (wall time in brackets) and peak memory. `growth` is the
time of the last size divided by that of the size before; with ten times as many rows, n log n grows by 12 or 13.

CPU seconds on a machine with nothing else to do (reference loop of `edits.py`: 0.4 s), 200 resamples:

                                                      10,000           100,000         1,000,000    growth
    read a table of questions                  0.27 s, 84 MB    3.30 s, 234 MB   35.8 s, 1760 MB      10.8
    draw half of them                          0.02 s, 84 MB    0.24 s, 234 MB    3.8 s, 1760 MB      15.8
    manifest: check, build, digest, write     0.29 s, 112 MB    3.50 s, 327 MB   46.3 s, 2572 MB      13.2
    pair_donors                               0.84 s, 124 MB    9.18 s, 281 MB   86.8 s, 2201 MB       9.5
    what a condition asks                     0.10 s, 108 MB    0.95 s, 269 MB   17.4 s, 1998 MB      18.3
    grade, two conditions                     0.32 s, 123 MB    3.03 s, 275 MB   42.9 s, 2075 MB      14.2
    score_answers, stated confidence          0.08 s, 115 MB    0.37 s, 244 MB    5.5 s, 1457 MB      14.8
    compute_metrics, no intervals             0.25 s, 124 MB    0.76 s, 248 MB    7.7 s, 1413 MB      10.2
    the same, 101 different confidences       0.19 s, 128 MB    0.74 s, 261 MB    8.2 s, 1498 MB      11.1
    evaluate, ten answers per image           1.01 s, 152 MB    1.43 s, 188 MB     9.4 s, 490 MB       6.6
    evaluate, every row by itself             1.00 s, 154 MB    1.83 s, 188 MB    15.3 s, 564 MB       8.4

The last two were measured later, beside other work. Their confidences all differ, which costs most: a resample of
1,000,000 rows of 200,000 images then takes 8 ms, and with 10,000 resamples `evaluate` took 82 s and 547 MB. Whole
numbers from 0 to 100 are kind to the bootstrap, and 0 and 1 have no calibration slope, which takes 4 seconds here; so
`compute_metrics` is measured with both kinds. Memory does not depend on the resamples.

Growth above 13 means that the rows no longer fit into the processor's caches.

Two steps grow faster by definition: pairing donors within one question (0.46 microseconds per pair of its images,
because the donor is the one with the smallest digest of source and donor), and the search for copies among the images
of several splits.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dualread
from dualread.artifacts.tables import read_table, write_rows, write_table
from dualread.data.datasets.base import Loaded, Row
from dualread.data.datasets.table import Settings, load_rows
from dualread.data.questions.audit import refuse_broken
from dualread.data.questions.build import build, digest
from dualread.data.questions.pictures import ImageFile
from dualread.data.questions.select import select
from dualread.models.conditions import asked
from dualread.readers.artifact import save_reader
from dualread.readers.base import FittedReader, Weights
from dualread.schema.answers import GradeSpec, Shard
from dualread.schema.base import ConfiguredPlugin, NoSettings, Plugin
from dualread.schema.columns import GENERATIONS, MANIFEST, PAIRS, PREDICTIONS
from dualread.schema.data import PairDonorsSpec, Select
from dualread.schema.metrics import Bootstrap, ComputeMetricsSpec, Metrics
from dualread.schema.readers import MethodReference, ScoreAnswersSpec
from dualread.stages import compute_metrics, grade, pair_donors, score_answers

PER_IMAGE, ASKED = 10, 20
ANSWERS = ("yes", "no", "left lung", "right lung", "liver")
RUN = {"backbone": "b", "actor": "a", "seed": 0, "method": "m"}
READER = {
    **{"backbone": "b", "actor": "a", "seed": 0, "views": ()},
    "reader": MethodReference(method="m", module="readers.verbalized", parents={}),
}
SHARD: dict[str, Any] = {"dataset": "d", "split": "test"}
# And the image that each shows.
CONDITIONS = {name: ConfiguredPlugin(module=f"models.images.{name}", settings={}) for name in ("original", "donor")}

# The measured steps; their inputs are read before the measurement.
Step = Callable[[], Any]


def official_rows(folder: Path, n: int) -> None:
    """Write a table of questions as a user would bring it, with rows in no order."""
    order = np.random.default_rng(0).permutation(n).tolist()
    with (folder / "test.jsonl").open("w") as file:
        for k in order:
            answer = ANSWERS[(k * 7919) % len(ANSWERS)]
            row = {"question": f"What is shown in region {k // ASKED}?", "reference_answers": [answer]}
            row |= {"image": f"images/{k % (n // PER_IMAGE)}.png", "id": f"q{k}", "modality": "ct"}
            file.write(json.dumps(row) + "\n")


def load(folder: Path) -> Step:
    return partial(load_rows, folder, "test", Settings())


def draw(folder: Path) -> Step:
    loaded = load(folder)()
    rule = Select(questions=len(loaded.rows) // 2, max_per_image=PER_IMAGE)
    return partial(select, loaded, rule, 0, lambda row: row.image_name)


def make_manifest(folder: Path) -> Step:
    loaded: Loaded = load(folder)()
    files = {picture.source: _file(row) for row in loaded.rows for picture in row.images}

    def made() -> None:
        refuse_broken(loaded, {})
        manifest, _ = build(loaded, files, dataset="d", split="test", roles="test", seed=0)
        digest(manifest)
        write_table(_new(folder / "manifest") / "manifest.parquet", manifest, MANIFEST)

    return made


def _file(row: Row) -> ImageFile:
    return ImageFile(file=row.image_name, pixel_sha256=row.image_name, thumbnail=b"")


def pair(folder: Path) -> Step:
    return partial(
        pair_donors.compute,
        PairDonorsSpec(dataset="slake", split="test", match_on=["modality"]),
        inputs(folder),
        _new(folder / "pairs"),
    )


def ask(folder: Path) -> Step:
    """Determine which question is asked about which image, as generation and replay do."""
    manifest, pairs = _manifest(folder), _pairs(folder)
    return lambda: asked(manifest, prompt="shared", images=[CONDITIONS["donor"]], pairs=pairs)


def judge(folder: Path) -> Step:
    for condition in CONDITIONS:
        _answers(folder, condition)

    def graded() -> None:
        for name, image in CONDITIONS.items():
            given = {**inputs(folder), "generations": folder / "generations" / name}
            out = _new(folder / "graded" / name)
            grade.compute(
                GradeSpec(
                    backbone="tiny",
                    actor="rlvr",
                    seed=17,
                    contract=Plugin(module="grading.contracts.single"),
                    **SHARD,
                    condition=name,
                    image=image,
                ),
                given,
                out,
            )

    return graded


def _answers(folder: Path, condition: str) -> None:
    """Write completions of the usual form; about half of the answers are correct."""
    frame = _manifest(folder) if condition == "original" else _pairs(folder).rename({"donor_image_id": "image_id"})
    n, stream = len(frame), np.random.default_rng(1)
    said, sure = stream.integers(0, 2, n).tolist(), stream.integers(0, 101, n).tolist()
    text = [f"<answer>{ANSWERS[a]}</answer><confidence>{c}</confidence>" for a, c in zip(said, sure, strict=True)]
    columns = {
        **{"condition": pl.lit(condition), "sample_index": pl.lit(0), "prompt_sha256": pl.lit("0" * 64)},
        **{"n_prompt_tokens": pl.lit(90), "finish_reason": pl.lit("stop"), "text": pl.Series(text)},
        **{"token_ids": pl.lit([7] * 20), "token_log_probs": pl.lit([-0.5] * 20)},
    }
    made = frame.with_columns(**columns).select(pl.col(k).cast(v.dtype) for k, v in GENERATIONS.columns.items())
    write_rows(_new(folder / "generations" / condition), made.iter_rows(named=True), GENERATIONS)


def score(folder: Path) -> Step:
    """Score with the stated confidence, which costs only what every reader does with the rows."""
    provenance = {**RUN, "method": "m", "features": []}
    reader = FittedReader(module="readers.verbalized", settings=NoSettings(), weights=Weights(), provenance=provenance)
    save_reader(_new(folder / "reader") / "reader.safetensors", reader)
    spec = ScoreAnswersSpec(**READER, shards=tuple(Shard(**SHARD, condition=name) for name in CONDITIONS))
    given = {**inputs(folder), "reader": folder / "reader"}
    return partial(score_answers.compute, spec, given, _new(folder / "predictions"))


def measure(folder: Path, replicates: int, *, differ: bool = True) -> Step:
    """Compute the metrics of confidences that all differ, as those of most readers do, or of stated whole numbers.

    Where there are 101 different confidences, a resample of a million answers takes a tenth of the time.
    """
    predictions = folder / "predictions"
    if differ:
        predictions = _new(folder / "different")
        frame = read_table(folder / "predictions/predictions.parquet", PREDICTIONS)
        write_table(predictions / "predictions.parquet", frame.with_columns(confidence=_different(frame)), PREDICTIONS)
    metrics = Metrics(bootstrap=Bootstrap(replicates=replicates), target_risk_percent=[10])
    splits = {"d": ("test",)}
    spec = ComputeMetricsSpec(**RUN, study="benchmark", splits=splits, metrics=metrics, thresholds_from="d/test")
    given = {**inputs(folder), "predictions": predictions}
    return partial(compute_metrics.compute, spec, given, _new(folder / f"metrics{replicates}"))


def judge_table(folder: Path, replicates: int, *, per_image: int = PER_IMAGE) -> Step:
    """Evaluate a table of answers as a user would bring it, with confidences that all differ.

    It has one image per `per_image` answers; with 1, every row is resampled by itself.
    """
    n, rng = len(_manifest(folder)), np.random.default_rng(2)
    table = pl.DataFrame({"confidence": rng.random(n)}).with_columns(correct=pl.col("confidence") > rng.random(n))
    images = pl.DataFrame({"image_id": rng.integers(0, n // per_image, n)}) if per_image > 1 else pl.DataFrame()
    path = folder / f"answers{per_image}.parquet"
    pl.concat([table, images], how="horizontal").write_parquet(path)
    return partial(dualread.evaluate, path, replicates=replicates)


def _different(frame: pl.DataFrame) -> pl.Series:
    return pl.Series(np.random.default_rng(3).random(len(frame)))


def inputs(folder: Path) -> Mapping[str, Path]:
    """Return the inputs of the stages by all their names."""
    graded = {f"graded/d/test/{name}": folder / "graded" / name for name in CONDITIONS}
    shared = {"manifest": folder / "manifest", "pairs": folder / "pairs"}
    return {**shared, **{f"{name}/d/test": path for name, path in shared.items()}, **graded}


def _manifest(folder: Path) -> pl.DataFrame:
    return read_table(folder / "manifest/manifest.parquet", MANIFEST)


def _pairs(folder: Path) -> pl.DataFrame:
    return read_table(folder / "pairs/pairs.parquet", PAIRS)


def _new(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# In this order, because each step reads what earlier ones wrote.
STEPS: dict[str, Callable[..., Step]] = {
    "read a table of questions": load,
    "draw half of them": draw,
    "manifest: check, build, digest, write": make_manifest,
    "pair_donors": pair,
    "what a condition asks": ask,
    "grade, two conditions": judge,
    "score_answers, stated confidence": score,
    "compute_metrics, no intervals": partial(measure, replicates=0),
    "compute_metrics, with intervals": measure,
    "the same, 101 different confidences": partial(measure, differ=False),
    "evaluate, ten answers per image": judge_table,
    "evaluate, every row by itself": partial(judge_table, per_image=1),
}


def measured(step: str, folder: Path, replicates: int) -> None:
    """Run one step in this process; print CPU seconds, wall time in seconds, and peak memory in MB."""
    prepare = STEPS[step]
    asked = signature(prepare).parameters.get("replicates")
    run = prepare(folder, replicates=replicates) if asked and asked.default is asked.empty else prepare(folder)
    cpu, started = time.process_time(), time.perf_counter()
    run()
    taken = time.process_time() - cpu, time.perf_counter() - started
    print(json.dumps([*taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--replicates", type=int, default=1_000, help="of the bootstrap (%(default)s)")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        return measured(options.step[0], Path(options.step[1]), options.replicates)
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    print(f"{'':<38}" + "".join(f"{n:>30,}" for n in options.sizes) + "    growth", flush=True)
    with tempfile.TemporaryDirectory(prefix="rows") as folder:
        for n in options.sizes:
            official_rows(_new(Path(folder, str(n))), n)
        for step in STEPS:
            cells = []
            for n in options.sizes:
                command = [sys.executable, __file__, "--step", step, str(Path(folder, str(n)))]
                command += ["--replicates", str(options.replicates)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=one_thread)
                cells.append(json.loads(done.stdout))
            texts = "".join(f"{cpu:>10,.2f} s ({wall:>6,.1f}) {mb:>5,.0f} MB" for cpu, wall, mb in cells)
            growth = f"{cells[-1][0] / cells[-2][0]:>10.1f}" if len(cells) > 1 else ""
            print(f"{step:<38}{texts}{growth}", flush=True)
    return None


if __name__ == "__main__":
    main()
