"""Count the same-question donors among the rows of a writer, without a loader."""

from collections import defaultdict

from dualread.grading.canonical import canonical, question_key


def n_pairs(rows):
    """Count the rows (image, question, answer) whose question has another answer on another image."""
    by_question = defaultdict(set)
    for image, question, answer in rows:
        by_question[question_key(question)].add((image, canonical(str(answer))))
    return sum(
        any(image != other and canonical(str(answer)) != gold for other, gold in by_question[question_key(question)])
        for image, question, answer in rows
    )
