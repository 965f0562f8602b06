"""Confidences that replies state without tags: read where they can be read in one way only."""

import json

import pytest

import dualread
from dualread.data.logs.base import Sample
from dualread.own.log_confidences import stated_text, statements_in


@pytest.mark.parametrize(
    ("reply", "confidence", "answer"),
    [
        ("liver\nConfidence: 85%", "85%", "liver"),
        ("Answer: liver\nConfidence: 0.85\n", "0.85", "liver"),
        ("**Answer:** liver\n**Confidence:** 8.5/10", "8.5/10", "liver"),
        ("Guess: liver\nProbability: .95", ".95", "liver"),
        ("liver (90% sure)", "90%", "liver ()"),  # brackets at the end do not count in an answer
        ("Answer: liver, Confidence: 95 %", "95 %", "liver"),
        ("liver (confidence: 0,85)", "0,85", "liver )"),
        ("B\n\nFinal confidence level: ~80 % (quite sure)\n", "80 %", "B"),
        ("B\nConfidence (0-100) - 80", "80", "B"),
        ("B\nMy confidence in this answer is 85/100.", "85/100", "B"),
        ("B\nConfidence:\n85%", "85%", "B"),
        ("B\nConfidence：９０", "９０", "B"),
        ("yes\nConfidence: 80%\nas I said\nConfidence: 80%", "80%", "yes\n\nas I said"),
        ('{"answer": "liver", "confidence": 0.85}', "0.85", "liver"),
        ('```json\n{\n "Answer": 2,\n "Confidence": "85%"\n}\n```', "85%", "2"),
        # what can be read in several ways, or in none, stays as it is and is counted as unread
        ("B\nConfidence: 80%\nConfidence: 90%", "80% and 90%", "B"),
        ("B\nConfidence: 80-90%", "80-90%", "B"),
        ("B\nConfidence: 0.8 to 0.9", "0.8 to 0.9", "B"),
        ("B\nConfidence: high", "high", "B"),
        ("B\nConfidence: -5", "-5", "B"),
        ("B\nConfidence: >90%", ">90%", "B"),
        ("B\nConfidence: 85% of 3 readers", "85% of 3 readers", "B"),
        ("It is B; I am not 100% sure", "not 100% sure", "It is B; I am"),
        # and what states no confidence
        ("the 95% confidence interval: 3 to 4", None, "the 95% confidence interval: 3 to 4"),
        ("the probability: of malignancy is 3", None, "the probability: of malignancy is 3"),
        ("the model's confidence: 3 of 4 readers", None, "the model's confidence: 3 of 4 readers"),
        ("Answer: liver", None, "Answer: liver"),
    ],
)
def test_statements_without_tags(reply, confidence, answer):
    found = statements_in(reply)
    assert (found.confidence, found.answer) == (confidence, answer)


def test_a_tag_leaves_words_aside():
    tagged = "Confidence: 10%\n<answer>a</answer><confidence>90</confidence>"
    assert stated_text(Sample(sample_id="q", completions=(tagged,)), None) == "90"
    twice = f"{tagged}<confidence>90</confidence>"
    assert stated_text(Sample(sample_id="q", completions=(twice,)), None) is None


def test_long_replies_take_no_time():
    for word in ("confidence ", "my ", "the final confidence score in my answer ", "(", "{\n", "0,", "Answer: a\n"):
        assert statements_in(word * 20_000).confidence is None


def evaluated(folder, replies, **options):
    rows = [
        {
            **{"doc_id": k, "doc": {}, "target": "liver", "arguments": {"gen_args_0": {"arg_0": "?", "arg_1": {}}}},
            **{"resps": [[reply]], "filtered_resps": [reply], "filter": "none", "metrics": []},
        }
        for k, reply in enumerate(replies)
    ]
    path = folder / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return dualread.evaluate(path, log_format="lm-eval", replicates=0, **options)


def test_a_log_of_lines(tmp_path):
    replies = ["Answer: the liver\nConfidence: 90%", "kidney\nConfidence: 60 %", "liver (50% sure)", "liver"]
    found = evaluated(tmp_path, [*replies, "liver\nConfidence: high", "liver\nConfidence: 20%\nConfidence: 30%"])
    estimates = {row["metric"]: row for row in found.metrics.filter(subset="all").to_dicts()}
    assert estimates["accuracy"]["n"] == 3
    assert estimates["accuracy"]["estimate"] == pytest.approx(2 / 3)
    assert estimates["brier"]["estimate"] == pytest.approx((0.1**2 + 0.6**2 + 0.5**2) / 3)
    assert "2 cannot be read: 'high', '20% and 30%'" in "\n".join(found.notes)
    assert sum(found.left_out.values()) == 3
