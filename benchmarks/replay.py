"""The replay compared with a naive loop and with a plain pass through the model, on one core.

    python benchmarks/replay.py
    python benchmarks/replay.py --rows 128 --layers 4

naive   one answer at a time, `output_hidden_states=True`, vocabulary logits of every token
ours    `replay_batch` in batches of 64, as the stage calls it
plain   one pass of the same batches through the model, every prompt as a whole, that keeps nothing; ours can be
        faster, because it reads what prompts about one image share once

Each runs in a process of its own, on one thread. Seconds are CPU seconds, which a busy machine changes little. Peak
memory does not include the loaded model. The difference is the largest between any vector or log-probability and that
of the naive loop.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from _tiny import build, encode, forget_peak, load, peak_mb, resident_mb, rows

from dualread.models.actor import ReadSpec
from dualread.models.replay.forward import (
    VECTORS,
    answer_state,
    evidence_state,
    global_state,
    middle_layer,
    replay_batch,
)
from dualread.models.replay.positions import locate

KAPPA = 0.1
BATCH_SIZE = 64
REPEATS = 3  # the fastest counts


def naive(opened: Any, work: list[tuple[Any, list[int]]]) -> list[dict[str, np.ndarray]]:
    """Replay one answer after another, in the simplest way."""
    import torch

    model, encoder = opened.model, opened.encoder
    middle = middle_layer(model.config.get_text_config().num_hidden_layers)
    results = []
    for prompt, completion in work:
        n = len(prompt.token_ids)
        with torch.inference_mode():
            inputs = {**encoder.batch([prompt], [completion]), **encoder.image_inputs([prompt])}
            output = model(**inputs, output_hidden_states=True, use_cache=False)
        log_probs = torch.log_softmax(output.logits[0, n - 1 : -1].double(), -1)
        states, mid = output.hidden_states[-1][0], output.hidden_states[middle][0]
        at = locate(completion, encoder.decode, encoder.stop)
        image = states[:n][torch.tensor(prompt.token_ids) == encoder.image_token_id]
        answer = answer_state(states[[n + t for t in at.answer]])
        found = (states[n - 1], states[n + at.close], answer, global_state(image))
        found += (evidence_state(answer, image, KAPPA), mid[n + at.last])
        results.append(
            {name: vector.float().numpy() for name, vector in zip(VECTORS, found, strict=True)}
            | {"log_probs": log_probs[range(len(completion)), completion].numpy()}
        )
    return results


def ours(opened: Any, work: list[tuple[Any, list[int]]]) -> list[dict[str, np.ndarray]]:
    """Replay in batches, as the stage does."""
    results: dict[int, dict[str, np.ndarray]] = {}
    for group in _groups(work):
        replayed = replay_batch(opened, [work[i][0] for i in group], [work[i][1] for i in group], ReadSpec(kappa=KAPPA))
        results |= {i: {**r.vectors, "log_probs": r.token_log_probs} for i, r in zip(group, replayed, strict=True)}
    return [results[i] for i in range(len(work))]


def plain(opened: Any, work: list[tuple[Any, list[int]]]) -> None:
    """Run the same batches through the model and keep nothing."""
    import torch

    for group in _groups(work):
        prompts, completions = ([work[i][k] for i in group] for k in (0, 1))
        with torch.inference_mode():
            inputs = opened.encoder.batch(prompts, completions)
            opened.model.model(**inputs, **opened.encoder.shared_images(opened.model, prompts), use_cache=False)


METHODS = {"naive": naive, "ours": ours, "plain": plain}


def _groups(work: list[tuple[Any, list[int]]]) -> list[list[int]]:
    order = sorted(range(len(work)), key=lambda i: (work[i][0].image_sha256, len(work[i][1]), i))
    return [order[start : start + BATCH_SIZE] for start in range(0, len(order), BATCH_SIZE)]


def measure(method: str, family: str, checkpoint: Path, n_rows: int, out: Path) -> None:
    """Run one method in this process and save its results, time, and memory."""
    opened = load(family, checkpoint)
    about = rows(n_rows)
    METHODS[method](opened, [encode(opened.encoder, row) for row in about[:2]])  # first calls allocate lasting memory
    before = resident_mb()
    forget_peak()
    found, seconds, peaks = [], [], []
    for _ in range(REPEATS):
        opened.encoder._images.clear()
        started = time.process_time()
        found = METHODS[method](opened, [encode(opened.encoder, row) for row in about]) or []
        seconds.append(time.process_time() - started)
        peaks.append(peak_mb() - before)
    arrays = {f"{i} {name}": array for i, row in enumerate(found) for name, array in row.items()}
    np.savez(out, seconds=min(seconds), peak=peaks[0], **arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--layers", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--families", nargs="+", default=["qwen3_vl", "gemma3"])
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)  # method, family, checkpoint, where to save
    options = parser.parse_args()
    if options.measure:
        method, family, checkpoint, out = options.measure
        measure(method, family, Path(checkpoint), options.rows, Path(out))
        return
    table = []
    with tempfile.TemporaryDirectory() as scratch:
        for family in options.families:
            for layers in options.layers:
                checkpoint = Path(scratch, f"{family}-{layers}")
                build(family, checkpoint, rows(options.rows), layers=layers)
                table += list(_compare(family, layers, checkpoint, options.rows))
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(pl.DataFrame(table))


def _compare(family: str, layers: int, checkpoint: Path, n_rows: int) -> list[dict[str, Any]]:
    saved = {}
    for method in METHODS:
        saved[method] = _run(method, family, checkpoint, n_rows)
        # Once more for the memory: with these, what is freed is given back at once, which takes time.
        strict = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
        saved[method]["peak"] = _run(method, family, checkpoint, n_rows, **strict)["peak"]
    naive_seconds = saved["naive"]["seconds"]
    table = []
    for method, found in saved.items():
        names = [name for name in saved["naive"] if name in found and name not in ("seconds", "peak")]
        worst = max((np.abs(found[name] - saved["naive"][name]).max() for name in names), default=None)
        table.append(
            {
                "family": family,
                "layers": layers,
                "method": method,
                "rows/s": round(n_rows / float(found["seconds"]), 1),
                "times naive": round(float(naive_seconds / found["seconds"]), 2),
                "peak MB": round(float(found["peak"]), 1),
                "largest difference": None if worst is None else f"{worst:.1e}",
            }
        )
    return table


def _run(method: str, family: str, checkpoint: Path, n_rows: int, **environment: str) -> dict[str, np.ndarray]:
    out = checkpoint / "out.npz"
    command = [sys.executable, __file__, "--rows", str(n_rows), "--measure", method, family, str(checkpoint), str(out)]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
    return dict(np.load(out))


if __name__ == "__main__":
    main()
