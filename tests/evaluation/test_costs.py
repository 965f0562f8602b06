import polars as pl
import pytest

from dualread.errors import ArtifactError
from dualread.evaluation.costs import Cost, as_metrics, generation_cost, reading_cost, scoring_cost, states_cost

ANSWERS = ("a", "b")


def generations(rows):
    """Return a table of (sample_id, sample_index, prompt tokens, generated tokens)."""
    return pl.DataFrame(
        [
            {"sample_id": name, "sample_index": k, "n_prompt_tokens": n_prompt, "token_ids": list(range(n_generated))}
            for name, k, n_prompt, n_generated in rows
        ],
        schema={"sample_id": pl.String, "sample_index": pl.Int32, "n_prompt_tokens": pl.Int32,
                "token_ids": pl.List(pl.Int32)},
    )  # fmt: skip


GREEDY = generations([("a", 0, 10, 3), ("b", 0, 20, 5)])
SAMPLES = generations([("a", 0, 10, 2), ("a", 1, 10, 4), ("b", 0, 20, 6), ("b", 1, 20, 8)])


def test_a_greedy_answer_is_one_pass_over_its_prompt():
    cost = generation_cost(GREEDY, ANSWERS, n_samples=1, where="x")
    assert cost == Cost(completions=2, prompt_passes=2, read_tokens=10 + 20, generated_tokens=3 + 5)
    assert cost.per_answer(2) == {
        "completions": 1.0, "prompt_passes": 1.0, "prompt_only_passes": 0.0, "replay_passes": 0.0,
        "read_tokens": 15.0, "generated_tokens": 4.0,
    }  # fmt: skip


def test_samples_of_an_answer_share_its_prompt():
    every = generation_cost(SAMPLES, ANSWERS, where="x")
    assert every == Cost(completions=4, prompt_passes=2, read_tokens=30, generated_tokens=2 + 4 + 6 + 8)
    one = generation_cost(SAMPLES, ANSWERS, n_samples=1, where="x")
    assert one == Cost(completions=2, prompt_passes=2, read_tokens=30, generated_tokens=2 + 6)


def test_choices_are_one_pass_whatever_their_number():
    choices = pl.DataFrame({"sample_id": ["a", "a", "b", "b"], "n_prompt_tokens": [12, 12, 22, 22]})
    expected = Cost(prompt_passes=2, prompt_only_passes=2, read_tokens=12 + 22)
    assert scoring_cost(choices, ANSWERS, where="x") == expected


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        ([], Cost()),
        (["answer_log_prob"], Cost()),
        (["h_pre"], Cost(prompt_passes=2, prompt_only_passes=2, read_tokens=30)),
        (["answer_log_prob", "h_pre"], Cost(prompt_passes=2, prompt_only_passes=2, read_tokens=30)),
        (["h_mid"], Cost(replay_passes=2, read_tokens=30 + 8)),
        # The replay of the answer passes the end of the prompt on its way.
        (["h_pre", "h_close", "h_ans"], Cost(replay_passes=2, read_tokens=30 + 8)),
    ],
)
def test_states_cost_what_has_to_be_run_for_them(tensors, expected):
    assert reading_cost(GREEDY, tensors) == expected


def test_a_view_of_states_costs_a_replay_and_a_measure_its_passes():
    index = pl.DataFrame({"n_prompt_tokens": [10, 20], "token_log_probs": [[-1.0] * 3, [-1.0] * 5]})
    assert states_cost(index) == Cost(replay_passes=2, read_tokens=30 + 8)
    assert states_cost(index, 2) == Cost(replay_passes=4, read_tokens=2 * (30 + 8))


def test_an_answer_that_a_view_does_not_ask_about_costs_nothing_there():
    choices = pl.DataFrame({"sample_id": ["a", "a"], "n_prompt_tokens": [12, 12]})
    assert scoring_cost(choices, ANSWERS, where="p_true") == Cost(prompt_passes=1, prompt_only_passes=1, read_tokens=12)
    asked = generations([("b", 0, 20, 5), ("b", 1, 20, 4)])
    expected = Cost(completions=2, prompt_passes=1, read_tokens=20, generated_tokens=9)
    assert generation_cost(asked, ANSWERS, where="samples") == expected


def test_what_is_done_for_the_same_answers_adds_up():
    # self-consistency over two samples: t + 2t, two encoded prompts
    cost = generation_cost(GREEDY, ANSWERS, where="x") + generation_cost(SAMPLES, ANSWERS, where="y")
    assert cost == Cost(completions=6, prompt_passes=4, read_tokens=60, generated_tokens=28)
    assert cost.per_answer(2)["completions"] == 3.0


def test_costs_stand_beside_the_accuracy_of_the_same_answers():
    run = {"backbone": "b", "actor": "a", "seed": 1, "dataset": "d", "split": "test", "method": "m"}
    costs = pl.DataFrame({**run, "answers": 2, **generation_cost(GREEDY, ANSWERS, where="x").per_answer(2)})
    accuracy = {"study": "s", **run, "subset": "all", "metric": "accuracy", "n": 2, "n_clusters": 1}
    rows = as_metrics(costs, pl.DataFrame(accuracy)).rows_by_key("metric", named=True, unique=True)
    assert rows["cost_read_tokens"]["estimate"] == 15.0
    assert (rows["cost_read_tokens"]["study"], rows["cost_read_tokens"]["n"]) == ("s", 2)
    for other, known in (({"n": 3}, "of 3"), ({"method": "another"}, "of none")):
        with pytest.raises(ArtifactError, match=f"of 2 answers, its accuracy is {known}"):
            as_metrics(costs, pl.DataFrame(accuracy | other))
