"""Run in an environment with inspect_ai: an evaluation with our metrics, and a log of Inspect that is scored anew.

The names and values of all metrics go to standard output, as JSON. `python inspect_eval.py LOG`
"""

import json
import math
import os
import sys

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import Task, eval, score
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.model._providers.mockllm import MockLLM
from inspect_ai.scorer import accuracy, pattern

from dualread.apps.harnesses.inspect import auroc, ccg_auc, ece, squared_calibration_error, with_confidence

ANSWER = r"<answer>(.*)</answer>"
CONFIDENCES = [0.95, 0.9, 0.6, 0.8, 0.55, 0.7]


async def three(self, *arguments, **named):
    return 3  # tokens, counted without downloading a tokenizer


MockLLM.count_tokens = MockLLM.count_text_tokens = three


def samples():
    """Thirty questions about ten images; every second one is asked again on the next image, where it is wrong."""
    for k in range(30):
        target = "yes" if k % 3 else "no"
        own = {"pair": f"q{k}", "image_id": f"image {k % 10}", "is_donor": False}
        yield Sample(id=f"q{k}", input=f"Is there a lesion? ({k})", target=target, metadata=own)
        if k % 2:
            swapped = {"pair": f"q{k}", "image_id": f"image {(k + 1) % 10}", "is_donor": True}
            yield Sample(id=f"q{k} swapped", input=f"Is there a lesion? ({k} swapped)", target="no", metadata=swapped)


def output(input, tools, tool_choice, config):
    number, _, swapped = input[-1].text.partition("(")[2].rstrip(")").partition(" ")
    percent = round(100 * CONFIDENCES[int(number) % 6]) - (20 if swapped and int(number) % 4 == 1 else 0)
    text = "I cannot tell." if number == "4" else f"<answer>yes</answer> <confidence>{percent}</confidence>"
    return ModelOutput.from_content("mockllm/model", text)


def values(log):
    """The metrics of a log, as it keeps them; and how many samples were not scored."""
    assert log.status == "success", log.error
    (found,) = log.results.scores
    numbers = {name: None if math.isnan(one.value) else one.value for name, one in found.metrics.items()}
    return numbers | {"unscored": found.unscored_samples}


def main():
    by_image = [metric(cluster="image_id") for metric in (auroc, ece, squared_calibration_error)]
    metrics = [accuracy(), *by_image, ccg_auc()]
    task = Task(MemoryDataset(list(samples())), scorer=with_confidence(pattern(ANSWER), metrics=metrics))
    model = get_model("mockllm/model", custom_outputs=output)
    (log,) = eval(task, model=model, log_dir="logs", log_format="eval", max_samples=1)
    again = score(
        read_eval_log(sys.argv[1]),
        with_confidence(pattern(ANSWER), metrics=[auroc(cluster="patient"), ece()]),
        epochs_reducer="mode",
        action="overwrite",
    )
    read = read_eval_log(log.location)
    rows = [
        {
            **sample.metadata,
            "sample_id": sample.id,
            "correct": one.value,
            "confidence": (one.metadata or {}).get("confidence"),
        }
        for sample in read.samples
        for one in sample.scores.values()
    ]
    print(json.dumps({"eval": values(read), "scored again": values(again), "rows": rows}))


if __name__ == "__main__":
    main()
