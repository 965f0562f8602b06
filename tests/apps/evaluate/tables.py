"""Small tables of a user, whose metrics are computed by hand in test_report."""

import polars as pl

ANSWERS = """\
sample_id,image_id,question,answer,correct,confidence
q1,ct-01,Is there a lesion?,yes,1,0.9
q2,ct-02,Is there a lesion?,no,0,0.8
q3,ct-01,Which organ?,liver,1,0.6
q4,ct-03,Which organ?,lung,0,0.3
"""
PAIRS = """\
sample_id,donor_image_id,donor_answer,donor_correct,donor_confidence
q1,ct-02,Yes.,0,0.5
q2,ct-01,yes,1,0.2
q3,ct-03,lung,0,0.7
"""
# The same with a further right answer: the decisive pairs are about two own images, and have an interval.
MORE_ANSWERS = f"{ANSWERS}q5,ct-02,Where?,left,1,0.7\n"
MORE_PAIRS = f"{PAIRS}q5,ct-03,right,0,0.4\n"


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def columns(text: str, *names: str) -> str:
    """Return the .csv `text` with only these columns."""
    return pl.read_csv(text.encode(), infer_schema=False).select(names).write_csv()


def without(text: str, *names: str) -> str:
    """Return the .csv `text` without these columns."""
    return pl.read_csv(text.encode(), infer_schema=False).drop(names).write_csv()


def many(names, n=60):
    """A table of answers of several methods; every second answer is right, with the higher confidence."""
    rows = [f"q{k},i{k},{k % 2},{0.3 + 0.4 * (k % 2) + k / 1000},{name}" for name in names for k in range(n)]
    return "\n".join(["sample_id,image_id,correct,confidence,method", *rows])
