"""`dualread score`: answer questions about images of one's own, and say how far each answer can be trusted.

`loading` loads reader and actor; `lines` reads a table of questions and writes one line for each of them, or prints one
result.
"""

import argparse
import json
from pathlib import Path

from dualread.apps.score import arguments
from dualread.errors import ConfigError

HELP = "answer the next question, and how far to trust the answer"
DESCRIPTION = """
Let an actor answer a question about an image, and read how far its answer can be trusted. READER is a fitted reader of
a study, a folder that `dualread export` wrote, or the id of such a repository on the Hugging Face hub. ACTOR is the
actor on whose answers the reader was fitted; leave it out if it is in the folder. Not for clinical use.

  readers=results/embedded/readers/qwen3-vl-tiny/rlvr/17
  actor=results/embedded/actors/qwen3-vl-tiny/rlvr/17
  dualread score --reader $readers/dualread --checkpoint $actor --image x.png --question "Is there a lesion?"

  answer      no
  confidence  0.7903  PSR 0.9430 before the answer, PER 0.4620 after it
  decision    keep: 0.7903 is at least 0.7144, the empirical threshold for a risk of 10%

PSR is read before the answer exists, PER after it; the confidence of the method dualread is their mean in log-odds.
With --donor, the same question is asked about another image as well, where its answer should be another one: the
confidence should drop. With --methods, other methods of the study say what they think of the same answer.

With --input, many questions are read from a table (.jsonl, .json, .csv, .tsv, .parquet, each also as .gz), and one line
is written for each of its rows, in order. In JSON lines:

  {"image": "x.png", "question": "Is there a lesion?"}
  {"image": "x.png", "question": "Which organ is shown?", "donor": "y.png", "id": "my name for it"}
  {"image": "z.png", "question": "Which is it?", "options": ["CT", "MRI", "X-ray", "Ultrasound"]}

An image is a PNG, JPEG, TIFF, WebP, GIF, BMP, JPEG 2000, PGM or DICOM file; of one with several frames, x.tif#2 is the
second. What was chosen to show an image, and that little can be seen of it, is said under "notes".

Images are looked for beside the file. Other columns are ignored, and no gold answer is needed. A row whose question
cannot be answered says why under "error"; no other line is affected. With --out, a run that was interrupted goes on
after the last line that it wrote, if it is given again.

A reader knows the actor, the prompts and the decoding that it was fitted on. Others are refused by name, or used with
--allow-other, which every result then says under "notes".
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    arguments.add_arguments(parser)
    parser.add_argument("--image", type=Path, nargs="+", help="the image file, or several in their order")
    parser.add_argument("--question", help="the question about it")
    parser.add_argument("--options", nargs=4, metavar="TEXT", help="the options of a multiple-choice question")
    parser.add_argument(
        "--donor",
        type=Path,
        nargs="+",
        metavar="IMAGE",
        help="another image, or others, to ask the same question about",
    )
    parser.add_argument("--input", type=Path, metavar="FILE", help="a table of questions, see above")
    parser.add_argument("--out", type=Path, metavar="FILE", help="with --input: write to FILE; go on if it exists")
    parser.add_argument("--json", action="store_true", help="print the whole result as JSON, with the completion")
    parser.add_argument("--batch-size", type=int, default=16, help="questions that are answered at once (%(default)s)")


def run(options: argparse.Namespace) -> int:
    """Score what `options` name; return the exit code."""
    _check(options)
    from dualread.apps.score import lines
    from dualread.apps.score.scorer import Scorer

    asked = None if options.input is None else lines.read_rows(options.input)
    choice, reading = vars(arguments.choice(options)), {"bits": options.bits, "ct_windows": options.ct_windows}
    scorer = Scorer.load(**choice, **reading, batch_size=options.batch_size)
    if asked is not None:
        return lines.score(scorer, asked, options.out)
    scored = scorer(options.image, options.question, options=options.options or (), donor=options.donor)
    print(json.dumps(scored.to_json(), ensure_ascii=False) if options.json else lines.text(scored, scorer.method))
    return 0


def _check(options: argparse.Namespace) -> None:
    single = {"--image": options.image, "--question": options.question, "--donor": options.donor}
    stated = [name for name, value in {**single, "--options": options.options}.items() if value is not None]
    if options.input is not None and stated:
        raise ConfigError(f"{', '.join(stated)} beside --input: expected the questions of the file, or a single one.")
    if options.input is None and (missing := [name for name in ("--image", "--question") if single[name] is None]):
        raise ConfigError(f"no {' and no '.join(missing)}: expected both, or --input with a file of questions.")
    if options.input is None and options.out is not None:
        raise ConfigError("--out without --input: a single result is printed; use `>` to write it to a file.")
    if options.batch_size < 1:
        raise ConfigError(f"--batch-size {options.batch_size}: expected at least 1.")
