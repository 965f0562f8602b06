"""How samples_lesions.jsonl was made: `python lmms_eval_log.py`, with lmms-eval 0.7.3.

A task of three questions about two images, which the data set names by their paths, with two draws of each answer. The
model is made up; a metric that is a mapping and one that is a number are logged.
"""

import json
import sys
from pathlib import Path

from lmms_eval.api.model import lmms
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.loggers import EvaluationTracker
from lmms_eval.tasks import TaskManager

ASKED = [
    {"question_id": "a", "image": "scans/1.png", "question": "Is there a lesion?", "answer": "yes"},
    {"question_id": "b", "image": "scans/1.png", "question": "Which organ?", "answer": "liver"},
    {"question_id": "c", "image": "scans/2.png", "question": "Is there a lesion?", "answer": "no"},
]
DRAWS = {0: ["yes", "Yes."], 1: ["kidney", "liver"], 2: ["no", "yes"]}
TASK = """
task: lesions
dataset_path: json
dataset_kwargs: {data_files: {test: asked.jsonl}}
test_split: test
output_type: generate_until
doc_to_visual: !function lesions.visual
doc_to_text: "{question}"
doc_to_target: answer
process_results: !function lesions.judged
repeats: 2
generation_kwargs: {max_new_tokens: 8, do_sample: true, temperature: 1}
metric_list:
  - {metric: exact, aggregation: !function lesions.mean, higher_is_better: true}
  - {metric: by_organ, aggregation: !function lesions.mean, higher_is_better: true}
"""
FUNCTIONS = """
def visual(doc):
    return []

def mean(values):
    return 0.0

def judged(doc, results):
    right = float(results[0].lower() == doc["answer"])
    return {"exact": right, "by_organ": {"question_id": doc["question_id"], "score": right, "organ": "liver"}}
"""


class MadeUp(lmms):
    def __init__(self):
        super().__init__()
        self.seen = {}

    def generate_until(self, requests):
        found = []
        for request in requests:
            self.seen[request.doc_id] = self.seen.get(request.doc_id, -1) + 1
            found.append(DRAWS[request.doc_id][self.seen[request.doc_id]])
        return found

    def loglikelihood(self, requests):
        raise NotImplementedError

    def generate_until_multi_round(self, requests):
        raise NotImplementedError


Path("asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ASKED))
Path("lesions.yaml").write_text(TASK.replace('"{question}"', "question"))
Path("lesions.py").write_text(FUNCTIONS)
sys.path.insert(0, ".")
tracker = EvaluationTracker(output_path="out")
found = simple_evaluate(
    MadeUp(),
    tasks=["lesions"],
    task_manager=TaskManager(include_path="."),
    bootstrap_iters=0,
    evaluation_tracker=tracker,
)
tracker.save_results_aggregated({"config": {}}, found["samples"], "20261124")
tracker.save_results_samples("lesions", found["samples"]["lesions"])
