"""Check that two engines in separate processes give the results of a single engine; run in vLLM's environment.

python two_processes.py FAMILY CHECKPOINT
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from dualread.models.actor import Request, SeededDecoding
from dualread.models.generation import vllm_engine
from dualread.models.generation.data_parallel import DataParallelEngine
from tests.tiny import MODEL, image

SETTINGS = {"max_num_seqs": 8}


def main(checkpoint: Path) -> None:
    one = vllm_engine.open_engine(checkpoint, MODEL, SETTINGS)
    arguments = (checkpoint, MODEL, SETTINGS)
    two = DataParallelEngine(vllm_engine.VllmEngine, arguments, ["", ""], one.encoder)
    requests = [
        Request(text=f"Is this {i}?", images=[image(i % 3)], image_name=str(i % 3), row=f"row {i}") for i in range(20)
    ]
    sampling = SeededDecoding(temperature=1.0, top_p=0.9, n_samples=3, max_completion_tokens=8, seed=1)
    for alone, together in zip(one.answer(requests, sampling), two.answer(requests, sampling), strict=True):
        assert [c.token_ids for c in alone] == [c.token_ids for c in together]
        assert alone[0].prompt_token_ids == together[0].prompt_token_ids
    continuations = [[[40], [41, 42 + i]] for i in range(len(requests))]
    scored = (engine.loglikelihoods(requests, continuations) for engine in (one, two))
    for alone, together in zip(*scored, strict=True):
        assert abs(alone.values - together.values).max() < 1e-5
    print("equal")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
