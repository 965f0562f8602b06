"""How inspect.eval was made: `python inspect_log.py`, with inspect-ai 0.3.285, mockllm, and no network.

Four questions about two images, three epochs. Question q4 fails in the second epoch. The second scorer gives fractions.
"""

import base64
import os
import re
import sys
from pathlib import Path

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, Logprob, Logprobs, ModelOutput, get_model
from inspect_ai.model._providers.mockllm import MockLLM
from inspect_ai.scorer import Score, mean, pattern, scorer
from inspect_ai.solver import Generate, TaskState, generate, solver

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ASKED = {"q1": ("a.png", "yes"), "q2": ("a.png", "no"), "q3": ("b.png", "no"), "q4": ("b.png", "yes")}
# The answer and the stated percentage in each epoch.
REPLIES = {
    "q1": [("yes", 90), ("yes", 80), ("no", 60)],
    "q2": [("yes", 70), ("no", 40), ("no", 50)],
    "q3": [("no", 60), ("No.", 60), ("no", 70)],
    "q4": [("yes", 80), ("yes", 80), ("no", 60)],
}


async def three(self, *arguments, **named):
    return 3  # tokens, counted without downloading a tokenizer


@solver
def failing():
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if (state.sample_id, state.epoch) == ("q4", 2):
            raise RuntimeError("no connection")
        return state

    return solve


@scorer(metrics=[mean()])
def length():
    async def score(state: TaskState, target) -> Score:
        return Score(value=len(target.text) / 3)

    return score


def reply(name: str, epoch: int) -> ModelOutput:
    answer, percent = REPLIES[name][epoch]
    text = f"<answer>{answer}</answer> <confidence>{percent}</confidence>"
    output = ModelOutput.from_content("mockllm/model", text)
    tokens = re.findall(r"</?|\w+|\W", text)
    output.choices[0].logprobs = Logprobs(content=[Logprob(token=token, logprob=-percent / 400) for token in tokens])
    return output


def output(input, tools, tool_choice, config) -> ModelOutput:
    name = re.search(r"q\d", input[-1].text)[0]
    asked.append(name)
    return reply(name, asked.count(name) - 1 if name != "q4" else 2 * (asked.count(name) - 1))


asked: list[str] = []
MockLLM.count_tokens = MockLLM.count_text_tokens = three
Path("a.png").write_bytes(base64.b64decode(PIXEL))
Path("b.png").write_bytes(base64.b64decode(PIXEL) + b"b")
samples = [
    Sample(
        id=name,
        input=[ChatMessageUser(content=[ContentImage(image=image), ContentText(text=f"Is there a lesion? ({name})")])],
        target=target,
        metadata={"hospital": {"city": "Basel"}, "patient": name[-1:]},
    )
    for name, (image, target) in ASKED.items()
]
eval(
    Task(
        dataset=MemoryDataset(samples),
        solver=[failing(), generate()],
        scorer=[pattern(r"<answer>(.*)</answer>"), length()],
        epochs=3,
        name="lesions",
    ),
    model=get_model("mockllm/model", custom_outputs=output, memoize=False),
    log_dir="logs",
    log_format=sys.argv[1] if len(sys.argv) > 1 else "eval",
    fail_on_error=False,
    max_connections=1,
    max_samples=1,
)
