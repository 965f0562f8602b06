"""Time answers with 20 samples each, by this library and by a peer, on one tiny checkpoint: benchmarks/peers.py FOLDER.

    python benchmarks/peers.py results/embedded/actors/qwen3-vl-tiny/base/0

The peer is medvlm (pypi.org/project/medvlm), which has methods of the same names; it has to be installed in the
environment that runs this. Where it is not, this library is timed alone, and the last line says so. Both get the same
pictures and questions, one prompt, and the same temperature and limit of tokens, in one thread and with the checkpoint
in float32. The peer's model is in memory before the clock starts. This library's seconds are those of the whole call,
with loading, the trial of the checkpoint, and a greedy answer to each question, which the peer does not give. The
second line is another call with other questions, when the checkpoint is known.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import contextlib
import importlib.util
import io
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dualread.apps.score.loading import checkpoint_folder
from dualread.models import prompts
from dualread.models.backbones.processor import load_processor
from dualread.training.corpora import phantom

TEMPERATURE, LIMIT = 0.7, 64  # the peer's defaults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="the folder of a Qwen3-VL checkpoint, or of a study's actor")
    parser.add_argument("--questions", type=int, default=60, help="questions (%(default)s)")
    parser.add_argument("--samples", type=int, default=20, help="samples of each answer (%(default)s)")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    checkpoint = checkpoint_folder(options.checkpoint)
    asked = questions(2 * options.questions)
    first, other = asked[: options.questions], asked[options.questions :]
    with TemporaryDirectory() as folder:
        for given, what in ((first, "the whole call"), (other, "the next call")):
            took, found = timed(lambda given=given: ours(checkpoint, given, options.samples, folder))
            print(f"dualread  {took}  {what}: {len(found)} questions x {options.samples} samples")
    if importlib.util.find_spec("medvlm") is None:
        print("medvlm is not installed here: nothing to compare with")
        return
    model, processor, config = opened(checkpoint)
    took, found = timed(lambda: theirs(model, processor, config, first, options.samples))
    print(f"medvlm    {took}  {len(found)} questions x {options.samples} samples, model in memory")


def questions(n: int) -> list[dict[str, Any]]:
    """Return questions about drawn pictures, one per picture."""
    corpus = phantom.open_corpus(phantom.Settings(n_images=n, held_out=1, size=64), None, 0)
    first = [(subject.views[0], subject.items[0]) for subject in corpus.training]
    return [{"image": view, "question": item.question, "answer": item.answer} for view, item in first]


def ours(checkpoint: Path, asked: list, n_samples: int, folder: str) -> Any:
    import dualread

    drawn = {"temperature": TEMPERATURE, "n_samples": n_samples, "max_completion_tokens": LIMIT}
    method = {"sampling": {"reader": "radflag", "views": ["samples"], "settings": {"k": n_samples}}}
    return dualread.confidences(
        checkpoint,
        asked,
        method,
        settings={"views": {"samples": {"decoding": drawn}}},
        batch_size=512,
        max_completion_tokens=LIMIT,
        folder=folder,
    )


def opened(checkpoint: Path) -> tuple[Any, Any, Any]:
    from medvlm.configs import ModelConfig, ModelFamily  # pyright: ignore[reportMissingImports]
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(checkpoint, dtype="float32").eval()
    config = ModelConfig(model_id=str(checkpoint), model_family=ModelFamily.QWEN_VL, torch_dtype="float32")
    return model, load_processor(checkpoint, {}), config  # that of transformers needs torchvision, too


def theirs(model: Any, processor: Any, config: Any, asked: list, n_samples: int) -> Any:
    import medvlm  # pyright: ignore[reportMissingImports]
    from medvlm.confidence import sampling  # pyright: ignore[reportMissingImports]

    sampling.SAMPLING_PROMPTS["base"] = prompts.template("shared").replace("{QUESTION}", "{question}")
    how = {"num_samples": n_samples, "temperature": TEMPERATURE, "question_type": "open", "show_progress": False}
    return medvlm.compute_confidence(model, processor, config, asked, method="sampling", **how)


def timed(run: Callable[[], Any]) -> tuple[str, Any]:
    started, used = time.perf_counter(), time.process_time()
    with contextlib.redirect_stderr(io.StringIO()):
        found = run()
    return f"{time.perf_counter() - started:6.1f} s ({time.process_time() - used:5.1f} s of CPU)", found


if __name__ == "__main__":
    main()
