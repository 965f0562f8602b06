"""A rehearsal of the paper's study at its real size: real configurations, real tokenizers, random weights.

    make test-full-size                       # everything; it needs 16 GiB of memory, or a GPU
    python benchmarks/full_size.py --backbones qwen3-vl-2b --only encode generate replay
    python benchmarks/full_size.py --vllm-python results/environments/vllm-*/bin/python --only generate replay

The backbones of paper.yaml, Qwen2.5-VL-3B and LLaVA 1.5 7B go through the stages of the workflow: encode, greedy
answers, samples, 101 integers, P(True), replay, and one step of every training algorithm. Replays by wrong models
have to be refused. A part that needs more memory than is free is left out. With `--vllm-python`, vLLM generates, with
greedy answers also in the pass that keeps their states, and on a GPU it samples for the trainings; transformers replays
in either case, and refuses what it does not reproduce.

On a machine with a GPU, models are whole, batches are those of paper.yaml, and the table is written to
benchmarks/results/. Elsewhere batches are small, MedGemma answers with 12 of its 34 and 3 of its 27 layers, LLaVA
with 4 of its 32, and all models train with fewer. Each row is printed as soon as it is known. What fails hides
nothing else. The exit status is 1 if anything failed.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import _real

RESULTS = Path(__file__).with_name("results")
LIBRARY = Path(__file__).parents[1] / "lib"
_DTYPES = ("float32", "bfloat16")
_KINDS = ("generate", "replay", "wrong models")
_TRAINED = ("rlvr", "dcpo", "vl_calibration")
_ADAPTED = "lora"
_SAMPLED_SECONDS = 0.02
_COUNTED = ("RssAnon", "RssFile")  # kinds of memory in /proc/self/status: of its own, and pages of files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("build/full_size"), help="checkpoints and answers, 11 GB")
    parser.add_argument("--backbones", nargs="+", default=list(_real.BACKBONES), choices=list(_real.BACKBONES))
    parser.add_argument("--dtypes", nargs="+", default=list(_DTYPES), choices=list(_DTYPES))
    parser.add_argument("--only", nargs="+", choices=["encode", *_KINDS, *_TRAINED, _ADAPTED], help="some parts")
    parser.add_argument("--vllm-python", type=Path, help="of vLLM's environment; with it, vLLM generates")
    parser.add_argument("--write", action="store_true", help="write the table, also on a machine without a GPU")
    parser.add_argument("--process", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        return _work(options.folder, *options.process, on_vllm=bool(options.vllm_python))
    if reason := _real.missing_tokenizers():
        print(f"SKIPPED, nothing was tested: {reason}")
        return 0
    rows: list[dict[str, Any]] = []
    for backbone, dtype, kind in _processes(options):
        for row in _started(options, backbone, dtype, kind):
            rows.append(row)
            print(_text(row), flush=True)
            if options.write or row.get("gpu"):
                _write(rows)
    failed = [row for row in rows if row["problem"]]
    skipped = [row for row in rows if row["found"].startswith("SKIPPED")]
    seconds = sum(row.get("cpu_seconds", 0.0) for row in rows)
    counts = f"{len(rows)} parts, {len(failed)} failed, {len(skipped)} skipped; {seconds:.0f} s CPU"
    print("\n".join([counts, *(_text(row) for row in (*failed, *skipped))]))
    return 1 if failed else 0


def _processes(options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Yield (backbone, dtype, kind) of each process; a process holds one model, as a job of the workflow does."""
    for backbone in options.backbones:
        wanted = [(options.dtypes[0], "encode")]
        wanted += [(dtype, "probe") for dtype in options.dtypes if options.vllm_python]
        wanted += [(dtype, kind) for dtype in options.dtypes for kind in _KINDS]
        wanted += [(options.dtypes[-1], actor) for actor in (*_TRAINED, _ADAPTED)]
        only = {"probe", *options.only} if options.only else {kind for _, kind in wanted}
        yield from ((backbone, dtype, kind) for dtype, kind in wanted if kind in only)


def _started(options: argparse.Namespace, backbone: str, dtype: str, kind: str) -> Iterator[dict[str, Any]]:
    """Run one process and yield its rows as they come; if it dies, the last row says so."""
    vllm = options.vllm_python
    python = vllm if vllm and _runs_in_vllm(kind) else sys.executable
    command = [str(python), __file__, "--folder", str(options.folder), "--process", backbone, dtype, kind]
    command += ["--vllm-python", str(vllm)] if vllm else []
    paths = [str(LIBRARY), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if process.returncode:
        problem = f"the process ended with status {process.returncode} (-9: the system had no memory left)"
        yield {"backbone": backbone, "dtype": dtype, "part": kind, "found": "", "problem": problem}


def _runs_in_vllm(kind: str) -> bool:
    """Return whether a process runs in vLLM's environment, if that is given."""
    from dualread.models.generation.data_parallel import visible_gpus

    return kind == "generate" or (kind in (*_TRAINED, _ADAPTED) and bool(visible_gpus()))


def _work(folder: Path, backbone: str, dtype: str, kind: str, *, on_vllm: bool) -> int:
    """Do the parts of one process and print a JSON row for each."""
    if in_vllm := on_vllm and _runs_in_vllm(kind):
        from dualread.models.generation._vllm import prepare

        prepare()
    import torch
    from _parts import parts_of
    from _rehearsal import CPU, GPU, Rehearsal

    from dualread.machine import free_memory_gb

    on_gpu = torch.cuda.is_available()
    scale = GPU if on_gpu else CPU
    dtype = scale.trained_dtype[backbone] if kind in _TRAINED else dtype
    how = {"on_vllm": on_vllm, "trains_in_vllm": in_vllm and kind != "generate"}
    rehearsal = Rehearsal(folder=folder.resolve(), scale=scale, backbone=backbone, dtype=dtype, **how)
    device = torch.cuda.get_device_name() if on_gpu else _cpu()
    free = float(torch.cuda.mem_get_info()[0]) if on_gpu else free_memory_gb() * 1e9
    without_model = {counted: 0.0 if on_gpu else _in_use(counted) for counted in (_COUNTED, _COUNTED[:1])}
    for part in parts_of(kind, rehearsal):
        row: dict[str, Any] = {"backbone": backbone, "dtype": dtype, "part": part.name, "device": device, "gpu": on_gpu}
        row |= {"found": "", "problem": None}
        if (least := rehearsal.least(part.stage) if part.stage else part.least) > free:
            row["found"] = f"SKIPPED: it needs {least / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"
            print(json.dumps(row), flush=True)
            continue
        casts = part.stage in ("replay", f"train_actor ({_ADAPTED})")
        in_files = dtype == "bfloat16" and kind not in _TRAINED and not casts
        counted = _COUNTED if in_files else _COUNTED[:1]
        memory = _Memory(counted, on_gpu=on_gpu, shared=in_vllm)
        start, cpu = time.perf_counter(), time.process_time()
        try:
            with memory:
                row["found"] = part.run()
        except Exception as error:  # whatever it is, the next part is tried
            traceback.print_exc()
            row["problem"] = f"{type(error).__name__}: {error}"
        row |= {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
        row["memory"] = memory.peak - without_model[counted]
        print(json.dumps(row), flush=True)
    return 0


class _Memory:
    """The largest memory in use while a part runs, in bytes.

    Without a GPU, it is read from the system again and again. A model in bfloat16 stays in the pages of its files. A
    model in float32 is copied from them, and so is one that computes in float32 for a while, where that is the peak;
    pages of files are not counted then, as the system can drop them at any time. On a GPU, torch knows it. Where vLLM
    shares it, all of the GPU's memory in use is read again and again: torch takes what a sleeping vLLM has given back
    for used.
    """

    def __init__(self, counted: Sequence[str], *, on_gpu: bool, shared: bool) -> None:
        self.peak = 0.0
        self._counted = counted
        self._on_gpu = on_gpu
        self._by_torch = on_gpu and not shared
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        if self._by_torch:
            import torch

            torch.cuda.reset_peak_memory_stats()
        else:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        if self._by_torch:
            import torch

            self.peak = float(torch.cuda.max_memory_allocated())
        else:
            self._done.set()
            self._thread.join()

    def _watch(self) -> None:
        in_use = _on_first_gpu if self._on_gpu else partial(_in_use, self._counted)
        while not self._done.wait(_SAMPLED_SECONDS):
            self.peak = max(self.peak, in_use())


def _on_first_gpu() -> float:
    """Return the memory in use on the first GPU, by all processes, in bytes."""
    import pynvml  # pyright: ignore[reportMissingImports]  # in vLLM's environment

    pynvml.nvmlInit()
    return float(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used)


def _in_use(names: Sequence[str]) -> float:
    """Return the sum of some kinds of this process's memory, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    table = {name: value for name, _, value in (line.partition(":") for line in lines)}
    return float(sum(1024 * int(table[name].split()[0]) for name in names))


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    named = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    return f"{named} ({os.environ.get('OMP_NUM_THREADS', 'all')} threads)"


def _text(row: Mapping[str, Any]) -> str:
    return "  ".join(_cells(row))


def _cells(row: Mapping[str, Any]) -> list[str]:
    memory = row.get("memory")
    told = "" if memory is None else f"{memory / 1e9:.1f} GB"
    seconds = f"{row['seconds']:.0f} s ({row['cpu_seconds']:.0f} s CPU)" if "seconds" in row else ""
    problem = f"FAILED: {row['problem']} " if row["problem"] else ""
    return [row["backbone"], row["dtype"], row["part"], seconds, told, f"{problem}{row['found']}"]


def _write(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the table so far, as Markdown that is named after the device."""
    device = next((row["device"] for row in rows if "device" in row), "unknown")
    name = "-".join("".join(c if c.isalnum() else " " for c in device.lower()).split())
    titles = ["backbone", "dtype", "part", "time", "memory", "found"]
    lines = [f"`make test-full-size` on {device}", "", *(f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * 6))]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in _cells(row))} |" for row in rows]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"full_size-{name}.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
