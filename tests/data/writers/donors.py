"""Same-question donors among the rows that a writer wrote, counted without any loader."""

from collections import defaultdict

from dualread.grading.canonical import canonical, question_key


def n_pairs(rows):
    """Count the (image, question, answer) rows with the same question, another image and another answer elsewhere."""
    by_question = defaultdict(set)
    for image, question, answer in rows:
        by_question[question_key(question)].add((image, canonical(str(answer))))
    return sum(
        any(image != other and canonical(str(answer)) != gold for other, gold in by_question[question_key(question)])
        for image, question, answer in rows
    )
