"""`dualread evaluate`: every metric of confidences that were made anywhere, read from plain tables.

`given` reads a table, `answers` makes of it what the workflow's own metrics are computed from, `report` prints and
writes them. Nothing is imported here, so that the program starts fast.
"""

import argparse
from pathlib import Path

HELP = "metrics of your own predictions"
DESCRIPTION = """
Every metric, CCG-AUC and interval of the workflow, for confidences that were made anywhere. No model is loaded.

PREDICTIONS is a table (.csv, .jsonl or .parquet), one row an answer. Other columns than these are ignored:

  confidence        probability that the answer is correct, from 0 to 1
  correct           1 or 0, true or false. Or, to have answers graded as in the paper, both of:
  answer              the answer (with `correct`, it serves Strict CCG-AUC only)
  reference_answer    the gold answer; `a#b` accepts a and b, and so does a list in .jsonl and .parquet
  image_id          optional, needed with --pairs: intervals resample images; without, rows count as independent
  question          optional: for the within-question AUROC
  answer_type       optional: open or closed; each gets metrics of its own
  method            optional: who made the confidence. Methods are listed side by side and meet the same resamples
  sample_id         the question's name, once a method; needed with --pairs only

PAIRS adds CCG-AUC: one row a question that was asked again on a donor's image, where its gold answer is another.

  sample_id         the question in PREDICTIONS
  donor_image_id    the donor's image (with --cluster COLUMN: donor_COLUMN). An image without an answer in
                    PREDICTIONS is a cluster of its own
  donor_confidence  confidence in the answer on the donor's image
  donor_correct     whether that answer is right there, or donor_answer and donor_reference_answer
  donor_answer      optional: for Strict CCG-AUC, with `answer` in PREDICTIONS
  method            needed with several methods

For example, predictions.csv and pairs.csv:

  sample_id,image_id,question,answer,reference_answer,confidence
  q1,ct-01,Is there a lesion?,yes,yes,0.92
  q2,ct-01,Which organ is shown?,the liver,Liver,0.71
  q3,ct-02,Is there a lesion?,yes,no,0.64

  sample_id,donor_image_id,donor_answer,donor_correct,donor_confidence
  q1,ct-02,yes,0,0.55

  dualread evaluate predictions.csv --pairs pairs.csv --out mine
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads to `parser`."""
    parser.add_argument("predictions", type=Path, metavar="PREDICTIONS", help="table of answers, see above")
    parser.add_argument("--pairs", type=Path, help="table of donor pairs, see above")
    parser.add_argument(
        "--cluster",
        metavar="COLUMN",
        help="resample the values of this column instead of image_id, such as patients; images are then these",
    )
    parser.add_argument("--replicates", type=int, default=10_000, help="resamples; 0: no intervals (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="another one draws other resamples (%(default)s)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write metrics.csv (full precision) and a reliability diagram (reliability.pdf, .png, .csv) there",
    )


def run(options: argparse.Namespace) -> int:
    """Evaluate the files that `options` names; return the exit code."""
    from dualread.commands.evaluate import answers, report

    cells = answers.read_cells(options.predictions, pairs=options.pairs, cluster=options.cluster)
    metrics = report.metrics_of(cells, replicates=options.replicates, seed=options.seed)
    for line in report.lines(cells, metrics, replicates=options.replicates, seed=options.seed):
        print(line)
    if options.out is not None:
        report.write(cells, metrics, options.out)
        print(f"\nwrote {options.out}: metrics.csv, reliability.pdf, .png, .csv")
    return 0
