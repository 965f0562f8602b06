"""Milliseconds of a step of generation with transformers: one more token for each of some answers.

    python benchmarks/step_time.py
    python benchmarks/step_time.py --backbone qwen3-vl-2b \\
        --checkpoint build/full_size/actors/qwen3-vl-2b-all-all-0/checkpoint    # `full_size.py` has written it

A step is measured twice: while lengths are new, and with lengths that this process has seen. On a GPU, it is measured
with cuDNN's attention as well, which `models.backbones.parts.attend_without_cudnn` switches off.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch
import yaml
from _tiny import ROOT, backbone_entry, build, rows

from dualread.models.actor import EncodedRequest, SeededDecoding
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.generation._transformers_stream import complete

FEW, MANY = 3, 27  # tokens; the steps between them are measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, help="by default, an untrained tiny one")
    parser.add_argument("--backbone", default="qwen3-vl-2b", help="of paper.yaml, which opens it (%(default)s)")
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 8, 64], help="answers")
    options = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    print(f"{'attention':<16}{'answers':>8}{'new lengths':>13}{'known ones':>12}")
    with tempfile.TemporaryDirectory() as folder:
        if options.checkpoint:
            study = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text(encoding="utf-8"))
            checkpoint, settings = options.checkpoint, study["backbones"][options.backbone]["settings"]
        else:
            checkpoint, settings = Path(folder), backbone_entry("qwen3_vl")["settings"]
            build("qwen3_vl", checkpoint, rows(64))
        opened = open_checkpoint(checkpoint, settings)
        about = [
            opened.encoder.prompt(row.text, images=[row.image], row=row.name) for row in rows(max(options.at_once))
        ]

    def seconds(n: int, tokens: int) -> float:
        decoding = SeededDecoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=tokens, seed=0)
        begun = time.perf_counter()
        requests = [EncodedRequest(name=prompt.row, prompt=prompt, decoding=decoding) for prompt in about[:n]]
        with torch.inference_mode():
            complete(opened, requests)  # it ends with the tokens on the CPU
        return time.perf_counter() - begun

    def step(n: int) -> float:
        return 1000 * (seconds(n, MANY) - min(seconds(n, FEW) for _ in range(2))) / (MANY - FEW)

    for with_cudnn in (False, True) if on_gpu else (False,):
        torch.backends.cuda.enable_cudnn_sdp(with_cudnn)
        for n in options.at_once:
            seconds(n, FEW)
            new, known = step(n), step(n)
            name = "with cuDNN" if with_cudnn else "without cuDNN" if on_gpu else "on this CPU"
            print(f"{name:<16}{n:>8}{new:>10.1f} ms{known:>9.1f} ms", flush=True)


if __name__ == "__main__":
    main()
