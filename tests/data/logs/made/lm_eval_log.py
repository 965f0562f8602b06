"""How samples_organs.jsonl and samples_sums.jsonl were made: `python lm_eval_log.py`, with lm-eval 0.4.13.

`organs` is a multiple-choice task, `sums` one of generation with two filters and three draws. The model is made up.
"""

import json
import re
import sys
from pathlib import Path

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

ORGANS = [
    {"case": "ct-1", "question": "Which organ?", "choices": ["liver", "the left kidney"], "label": 0},
    {"case": "ct-1", "question": "Which side?", "choices": ["left", "right"], "label": 1},
    {"case": "ct-2", "question": "Which organ?", "choices": ["spleen", "liver"], "label": 1},
]
LIKELIHOODS = {"liver": -1.0, "the left kidney": -2.5, "left": -2.0, "right": -2.5, "spleen": -0.5}
SUMS = [
    {"question": "2 + 2", "answer": "4"},
    {"question": "3 + 4", "answer": "7"},
    {"question": "1 + 8", "answer": "9"},
]
DRAWS = {
    "2 + 2": ["It is #### 4", "#### 4", "#### 5"],
    "3 + 4": ["I say 8, no: 7", "#### 7", "#### 7"],
    "1 + 8": ["#### 8", "#### 9", "#### 8"],
}
TASKS = {
    "organs.yaml": """
task: organs
dataset_path: json
dataset_kwargs: {data_files: {test: organs.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: choices
doc_to_target: label
metric_list: [{metric: acc}, {metric: acc_norm}]
""",
    "sums.yaml": """
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}} ="
doc_to_target: answer
repeats: 3
generation_kwargs: {until: ["\\n"], do_sample: true}
metric_list: [{metric: exact_match}]
filter_list:
  - {name: strict, filter: [{function: regex, regex_pattern: "#### (\\\\d+)"}, {function: take_first}]}
  - {name: last, filter: [{function: regex, regex_pattern: "(\\\\d+)", group_select: -1}, {function: take_first}]}
""",
}


class MadeUp(LM):
    def __init__(self):
        super().__init__()
        self.seen = {}

    def loglikelihood(self, requests):
        return [(LIKELIHOODS[request.args[1].strip()], False) for request in requests]

    def generate_until(self, requests):
        found = []
        for request in requests:
            question = re.match(r"(.*) =", request.args[0])[1]
            self.seen[question] = self.seen.get(question, -1) + 1
            found.append(DRAWS[question][self.seen[question]])
        return found

    def loglikelihood_rolling(self, requests):
        raise NotImplementedError


Path("organs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ORGANS))
Path("sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SUMS))
for name, text in TASKS.items():
    Path(name).write_text(text)
tracker = EvaluationTracker(output_path="out")
names = sys.argv[1:] or ["organs", "sums"]
found = simple_evaluate(
    MadeUp(), tasks=names, task_manager=TaskManager(include_path="."), log_samples=True, bootstrap_iters=0
)
tracker.save_results_aggregated({"config": {}}, found["samples"])
for name in names:
    tracker.save_results_samples(name, found["samples"][name])
