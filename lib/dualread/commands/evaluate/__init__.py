"""`dualread evaluate`: compute every metric for your own confidences, read from plain tables.

`given` reads a table, `answers` converts it to the form from which the workflow computes metrics, and `report` prints
and writes the metrics. The heavy imports are inside `run`, so that the program starts fast.
"""

import argparse
from pathlib import Path

HELP = "evaluate your own confidences"
DESCRIPTION = """
Compute all metrics of the workflow, CCG-AUC included, with their intervals, for confidences from any model and any
method. No model is loaded.

PREDICTIONS is a table (.csv, .jsonl or .parquet) with one row per answer and these columns; others are ignored:

  confidence        probability that the answer is correct, from 0 to 1
  correct           1 or 0, true or false. Or, to have answers graded as in the paper, both of:
  answer              the answer (if `correct` is given, it is used only for Strict CCG-AUC)
  reference_answer    the gold answer; `a#b` accepts a and b, as does a list in .jsonl and .parquet
  image_id          optional without --pairs: intervals resample images; without it, rows count as independent
  question          optional: for the within-question AUROC
  answer_type       optional: open or closed; each gets its own metrics
  method            optional: the method that gave the confidence. All methods are evaluated on the same resamples
  sample_id         the question's name, unique per method; needed only with --pairs

PAIRS adds CCG-AUC. It has one row per question that was asked again on another question's image (the donor), where the
gold answer is different:

  sample_id         the question in PREDICTIONS
  donor_image_id    the donor's image (with --cluster COLUMN: donor_COLUMN). An image without an answer in
                    PREDICTIONS is a cluster by itself
  donor_confidence  confidence in the answer on the donor's image
  donor_correct     whether that answer is correct there; or donor_answer and donor_reference_answer
  donor_answer      optional: for Strict CCG-AUC, with `answer` in PREDICTIONS
  method            needed if PREDICTIONS has several methods

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
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("predictions", type=Path, metavar="PREDICTIONS", help="table of answers, see above")
    parser.add_argument("--pairs", type=Path, help="table of donor pairs, see above")
    parser.add_argument(
        "--cluster",
        metavar="COLUMN",
        help="resample the values of this column, such as patients, instead of image_id",
    )
    parser.add_argument(
        "--replicates", type=int, default=10_000, help="number of resamples; 0 for no intervals (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the resampling (%(default)s)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="also write metrics.csv (full precision) and a reliability diagram (.pdf, .png, .csv) to FOLDER",
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
