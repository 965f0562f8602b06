"""`dualread score`: answer questions about images of one's own, and say how far each answer can be trusted.

`loading` loads reader and actor; `lines` reads a table of questions and writes one line for each of them, or prints one
result.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

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


@dataclass(frozen=True, kw_only=True)
class ScorerChoice:
    """What to score with: the arguments of `scorer.Scorer.load` by their names, which are explained there."""

    reader: str | Path
    checkpoint: str | Path | None = None
    base: str | Path | None = None
    methods: Sequence[str] = ()
    target_risk_percent: int | None = None
    certified: bool = False
    prompt: str | None = None
    revision: str | None = None
    allow_other: bool = False
    plugins: str | Sequence[str] = ()

    @classmethod
    def of(cls, options: argparse.Namespace) -> "ScorerChoice":
        """Return what the options of a verb name."""
        return cls(**{field.name: getattr(options, field.name) for field in fields(cls)})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    add_choice(parser)
    parser.add_argument("--image", type=Path, nargs="+", help="the image file, or several in their order")
    parser.add_argument("--question", help="the question about it")
    parser.add_argument("--options", nargs="+", metavar="TEXT", help="the options of a multiple-choice question")
    parser.add_argument(
        "--answer-type", choices=("open", "closed"), help="closed: the choices are yes and no, for answer sets"
    )
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


def add_choice(parser: argparse.ArgumentParser, *, reader: bool = True) -> None:
    """Add the options of a `ScorerChoice` and of reading images; without `reader`, the verb names the reader itself."""
    if reader:
        parser.add_argument(
            "--reader", required=True, help="a reader's folder or file, an exported folder, or a hub repository"
        )
    parser.add_argument(
        "--checkpoint",
        metavar="ACTOR",
        help="the actor's folder, that of its checkpoint, or owner/name@revision on the hub",
    )
    parser.add_argument("--base", help="if ACTOR is a LoRA adapter: what it was trained on, given like ACTOR")
    parser.add_argument("--revision", help="commit, tag or branch of the reader's hub repository")
    parser.add_argument("--methods", nargs="+", default=[], metavar="NAME", help="other methods, such as p_true")
    parser.add_argument(
        "--plugins",
        nargs="+",
        default=[],
        metavar="PACKAGE",
        help="other packages whose code the reader's file may name",
    )
    parser.add_argument(
        "--target-risk",
        type=int,
        dest="target_risk_percent",
        metavar="PERCENT",
        help="decide by the threshold for at most so many wrong answers (default: the smallest there is)",
    )
    parser.add_argument("--certified", action="store_true", help="decide by the certified threshold for this risk")
    parser.add_argument("--prompt", metavar="NAME", help="another prompt of the library; needs --allow-other")
    parser.add_argument(
        "--allow-other", action="store_true", help="use another actor or prompt than the reader's; results say so"
    )
    parser.add_argument(
        "--bits", type=int, metavar="N", help="bits that count in 16-bit gray images that do not say it, such as 12"
    )
    parser.add_argument(
        "--ct-windows",
        type=_windows,
        metavar="LOW:HIGH,...",
        help="three windows of Hounsfield units through which CT in DICOM is shown, as in the reader's study:"
        " --ct-windows=-1024:1024,-135:215,0:80",
    )


def _windows(text: str) -> list[list[float]]:
    """Return the numbers in windows that are separated by commas, their ends by colons."""
    return [[float(end) for end in window.split(":")] for window in text.split(",")]


def run(options: argparse.Namespace) -> int:
    """Score what `options` name; return the exit code."""
    _check(options)
    from dualread.apps.score import lines
    from dualread.apps.score.scorer import Scorer

    asked = None if options.input is None else lines.read_rows(options.input)
    choice, reading = vars(ScorerChoice.of(options)), {"bits": options.bits, "ct_windows": options.ct_windows}
    scorer = Scorer.load(**choice, **reading, batch_size=options.batch_size)
    if asked is not None:
        return lines.score(scorer, asked, options.out)
    choices = {"options": options.options or (), "answer_type": options.answer_type}
    scored = scorer(options.image, options.question, **choices, donor=options.donor)
    print(json.dumps(scored.to_json(), ensure_ascii=False) if options.json else lines.text(scored, scorer.method))
    return 0


def _check(options: argparse.Namespace) -> None:
    single = {"--image": options.image, "--question": options.question, "--donor": options.donor}
    of_choices = {"--options": options.options, "--answer-type": options.answer_type}
    stated = [name for name, value in {**single, **of_choices}.items() if value is not None]
    if options.input is not None and stated:
        raise ConfigError(f"{', '.join(stated)} beside --input: expected the questions of the file, or a single one.")
    if options.input is None and (missing := [name for name in ("--image", "--question") if single[name] is None]):
        raise ConfigError(f"no {' and no '.join(missing)}: expected both, or --input with a file of questions.")
    if options.input is None and options.out is not None:
        raise ConfigError("--out without --input: a single result is printed; use `>` to write it to a file.")
    if options.batch_size < 1:
        raise ConfigError(f"--batch-size {options.batch_size}: expected at least 1.")
