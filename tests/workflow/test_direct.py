"""`dualread.confidences` and a study that `dualread new` writes about the same rows: equal answers and confidences."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import dualread
from dualread.apps import main as program
from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.long

METHODS = {"verbalized": "rlvr", "p_true": "p_true", "sc2": "sc2", "bicr": "bicr", "dualread": "dualread"}
QUICK = "only: {methods: [rlvr, p_true, sc2, bicr, dualread]}\nmethods: {bicr: {settings: {max_epochs: 4}}}\n"


@pytest.fixture(scope="module")
def data(micro: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the micro study's questions as a table, and its base as `model`."""
    folder, results = tmp_path_factory.mktemp("data"), micro.folder / "results/micro"
    lines = []
    for split in ("train", "validation", "test"):
        manifest = results / "manifests/slake" / split
        shutil.copytree(manifest / "images", folder / "data/images", dirs_exist_ok=True)
        for row in pl.read_parquet(manifest / "manifest.parquet").iter_rows(named=True):
            if row["reference_answers"] != [""]:
                kept = {name: row[name] for name in ("question", "reference_answers", "answer_type")}
                kept |= {"image": row["image_files"][0], "id": row["sample_id"].replace("/", "-"), "split": split}
                lines.append(json.dumps(kept))
    (folder / "data/rows.jsonl").write_text("\n".join(lines))
    shutil.copytree(results / "actors/qwen3-vl-tiny/base/0/checkpoint", folder / "model")
    return folder


def test_the_numbers_are_those_of_a_study(data, tmp_path, monkeypatch):
    import torch

    checkout = Checkout.create(tmp_path / "checkout")
    monkeypatch.chdir(checkout.folder)
    assert program.main(["new", "examples", "--model", str(data / "model"), "--data", str(data / "data")]) == 0
    (checkout.folder / "quick.yaml").write_text(QUICK)
    made = "results/examples/answers/model/base/0/MANIFEST.json"
    run = checkout.snakemake(made, study="examples.yaml quick.yaml")
    assert run.returncode == 0, run.text
    expected = pl.read_parquet(Path(made).with_name("answers.parquet"))
    torch.set_num_threads(1)

    rows = [json.loads(line) for line in (data / "data/rows.jsonl").read_text().splitlines()]
    given = [{**row, "image": str(data / "data" / row["image"])} for row in reversed(rows)]
    changes = {"methods": {"bicr": {"settings": {"max_epochs": 4}}}}
    found = dualread.confidences(data / "model", given, list(METHODS), settings=changes, folder=tmp_path / "kept")
    assert found["sample_id"].to_list() == [row["id"] for row in given if row["split"] == "test"]
    for name, of_study in METHODS.items():
        theirs = expected.filter(method=of_study).select("answer", "correct", "confidence", id="sample_id")
        named = found.with_columns(id="examples/test/" + pl.col("sample_id"), c=f"confidence_{name}")
        ours = named.select("id", "answer", "correct", "reason", "c")
        both = ours.join(theirs, on="id", validate="1:1", suffix="_study")
        assert len(both) == len(ours) == len(theirs)
        assert both["answer"].equals(both["answer_study"].alias("answer"))
        assert both["correct"].equals(both["correct_study"].alias("correct"))
        # A study gives a confidence to an answer that does not exist, too, and counts that answer as wrong.
        exists = both["reason"].is_null()
        assert both.filter(exists)["c"].to_list() == both.filter(exists)["confidence"].to_list(), name
        assert both.filter(~exists)["c"].null_count() == (~exists).sum() == 1
    assert found["confidence_dualread"].n_unique() > 2


def unfinished(store):
    """Return the batches of a job that has not ended."""
    recorded = "".join(file.read_text() for file in store.glob("??/*/RECORD.json"))
    return [file for file in store.glob("batches/*/*.safetensors") if file.name[:64] not in recorded]


def test_a_killed_call_goes_on_where_it_ended(data, tmp_path):
    """Killed between two batches of its samples, it reads those that were finished, and writes the same rows."""
    out, kept = tmp_path / "answers.parquet", tmp_path / "kept"
    call = [sys.executable, "-m", "dualread", "answer", str(data / "model"), str(data / "data/rows.jsonl")]
    call += ["--methods", "sc2", "--batch-size", "8", "--max-tokens", "64", "--out", str(out), "--folder", str(kept)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(call, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not (finished := unfinished(kept / "store")):
        assert running.poll() is None, "it ended before a batch was seen"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not out.exists()
    written = [file.stat().st_ino for file in finished]
    again = subprocess.run(call, env=environment, check=True, capture_output=True, text=True)
    assert re.search(r"; [1-9]\d* of \d+ batches were there", again.stderr)
    assert [file.stat().st_ino for file in finished] == written
    undisturbed = [*call[:-1], str(tmp_path / "other")]
    undisturbed[undisturbed.index(str(out))] = str(tmp_path / "other.parquet")
    subprocess.run(undisturbed, env=environment, check=True, stderr=subprocess.DEVNULL)
    assert pl.read_parquet(out).equals(pl.read_parquet(tmp_path / "other.parquet"))
