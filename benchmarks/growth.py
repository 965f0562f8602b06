"""CPU time and peak memory of the stages on the road of given answers, by number of questions.

    python benchmarks/growth.py                  1,000 and 10,000 questions, a minute
    python benchmarks/growth.py 10000 100000     other sizes
    python benchmarks/growth.py 1000000 --only pair_donors_in_groups read_answers_of_a_service

A made-up study asks n questions about n / 5 images. Each cell runs in a process of its own, which first makes what the
stage reads; that is not part of the CPU time, but of the peak memory. `growth` is the CPU time of the last size divided
by that of the size before; with ten times as many questions, n log n grows by 12 or 13.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from dualread.artifacts.tables import from_many_rows, write_table
from dualread.data.donors import count_pairs, pair
from dualread.data.questions.copies import copies
from dualread.models.conditions import asked
from dualread.models.service.requests import requests_of
from dualread.reporting.figures import risk_coverage
from dualread.reporting.figures.drawing import house_style, save
from dualread.schema.answers import ChosenImage, Decoding, ReadAnswersSpec, Service, ShardSpec
from dualread.schema.base import Prompt
from dualread.schema.columns import MANIFEST
from dualread.schema.tables import FigureLayout, Labeled
from dualread.stages import read_answers

Work = Callable[[], object]
SERVICE = Service(model="m", log_probs=True, body={})
RUN = {"backbone": "m", "actor": "given", "seed": 0}


def manifest(n: int, *, questions: int, answers: int) -> pl.DataFrame:
    random = np.random.default_rng(0)
    images = random.integers(max(n // 5, 2), size=n)
    asked_, gold = random.integers(questions, size=n), random.integers(answers, size=n)
    return from_many_rows((_row(i, *row) for i, row in enumerate(zip(images, asked_, gold, strict=True))), MANIFEST)


def _row(i: int, image: int, question: int, gold: int) -> dict:
    return {
        **{"sample_id": f"made/test/{i:07d}", "dataset": "made", "split": "test", "role": "test"},
        **{"question": f"What is {question}?", "question_key": f"what is {question}", "answer_type": "open"},
        **{"reference_answers": [f"answer {gold}"], "content_family": None, "options": [], "modality": "ct"},
        **{"location": None, "image_files": [f"images/{image}.png"], "image_roles": [], "source_row": i},
        **{"pixel_sha256s": [f"{image:064x}"], "image_id": f"{image}.png", "donor_sample_id": None},
    }


def pair_donors_of_one_question(n: int, root: Path) -> Work:
    table = manifest(n, questions=1, answers=2)
    return lambda: (pair(table, ["modality"]), count_pairs(table, []))


def pair_donors_of_different_answers(n: int, root: Path) -> Work:
    table = manifest(n, questions=1, answers=n)
    return lambda: pair(table, [])


def pair_donors_in_groups(n: int, root: Path) -> Work:
    table = manifest(n, questions=max(n // 500, 1), answers=3)
    return lambda: pair(table, [])


def compare_images(n: int, root: Path) -> Work:
    """Compare n / 5 images that all look alike: one picture, bent at random."""
    random = np.random.default_rng(0)
    waves = np.cos(np.pi * np.arange(8)[:, None] * (np.arange(64) + 0.5) / 64)
    frequencies = random.normal(size=(8, 8)) + 0.3 * random.normal(size=(max(n // 5, 2), 8, 8))
    looks = np.empty((len(frequencies), 64, 64), dtype=np.uint8)
    for look, one in zip(looks, frequencies, strict=True):
        look[:] = np.clip(128 + 8 * waves.T @ one @ waves, 0, 255)
    places = np.arange(len(looks)) % 3
    return lambda: [list(copies(looks, places, mirrored=mirrored)) for mirrored in (False, True)]


def _responses(n: int, root: Path) -> dict[str, Path]:
    table, shard = manifest(n, questions=100, answers=3), _shard()
    for name in ("manifest", "responses", "out"):
        (root / name).mkdir()
    write_table(root / "manifest/manifest.parquet", table, MANIFEST)
    questions = asked(table, prompt=shard.prompt.name)
    with (root / "responses/batch.jsonl").open("w") as file:
        file.writelines(_lines(requests_of(shard, SERVICE, questions)))
    return {name: root / name for name in ("manifest", "responses")}


def _lines(requests: Iterator) -> Iterator[str]:
    pieces = ["<answer>", "left", " lung", "</answer>", "<confidence>", "80", "</confidence>"]
    content = [{"token": piece, "logprob": -0.5, "bytes": None, "top_logprobs": []} for piece in pieces]
    choice = {"index": 0, "message": {"content": "".join(pieces)}, "finish_reason": "stop"}
    body = {"choices": [{**choice, "logprobs": {"content": content}}], "usage": {"prompt_tokens": 300}}
    for request in requests:
        yield json.dumps({"custom_id": request.custom_id, "response": {"status_code": 200, "body": body}}) + "\n"


def _shard() -> ShardSpec:
    decoding = Decoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=256)
    return ShardSpec(
        dataset="made",
        split="test",
        condition="original",
        image=ChosenImage(module="models.images.original", settings={}),
        prompt=Prompt(name="shared", file="models/prompts/shared.txt"),
        decoding=decoding,
    )


def read_answers_of_a_service(n: int, root: Path) -> Work:
    inputs, spec = _responses(n, root), ReadAnswersSpec(**RUN, service=SERVICE, shard=_shard())
    return lambda: read_answers.compute(spec, inputs, root / "out")


def draw_risk_coverage(n: int, root: Path) -> Work:
    random = np.random.default_rng(0)
    named = (Labeled(name="psr", label="PSR"),)
    layout = FigureLayout(study="made", backbones=named, methods=named, datasets=named)
    names = {name: ["psr"] * n for name in ("backbone", "method", "dataset")}
    confidence, correct = random.random(n), random.random(n) < 0.7
    table = pl.DataFrame({**names, "seed": [0] * n, "confidence": confidence, "correct": correct})

    def work() -> None:
        with house_style():
            save(risk_coverage.draw({"answers": table}, layout), root, "risk_coverage", title="made")

    return work


# In the order of the road.
STAGES = (
    *(pair_donors_of_one_question, pair_donors_of_different_answers, pair_donors_in_groups, compare_images),
    *(read_answers_of_a_service, draw_risk_coverage),
)


def measured(stage: str, n: int, folder: Path) -> None:
    """Run one stage in this process; print its CPU seconds, and the peak memory in MB."""
    work = next(function for function in STAGES if function.__name__ == stage)(n, folder)
    started = time.process_time()
    work()
    print(json.dumps([time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[1_000, 10_000])
    names = [function.__name__ for function in STAGES]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="only these stages")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        stage, n, folder = options.measure
        return measured(stage, int(n), Path(folder))
    print(f"{'':<34}" + "".join(f"{n:>22,}" for n in options.sizes) + "    growth", flush=True)
    for stage in options.only:
        cells = []
        print(f"{stage.replace('_', ' '):<34}", end="", flush=True)
        for n in options.sizes:
            with tempfile.TemporaryDirectory(prefix="growth") as folder:
                command = [sys.executable, __file__, "--measure", stage, str(n), folder]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            cells.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"{cells[-1][0]:>10,.2f} s {cells[-1][1]:>7,.0f} MB", end="", flush=True)
        print(f"{cells[-1][0] / cells[-2][0]:>10.1f}" if len(cells) > 1 else "", flush=True)
    return None


if __name__ == "__main__":
    main()
