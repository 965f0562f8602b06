"""`dualread judge`: let a language model say whether answers mean their reference answers, beside exact match."""

import argparse
import json
from pathlib import Path
from typing import Any

from dualread.apps.ask import add_sending_arguments, endpoint_of
from dualread.errors import ConfigError

HELP = "let a model say whether answers mean their references"
DESCRIPTION = """
Ask a language model about every answer of a table whether it means the reference answer, say how far that agrees with
exact match, and write the table with `correct` as the model says it, which `dualread evaluate` reads. The table has the
columns question, answer and reference_answer, such as one that `dualread answer` or a study has written. No image is
sent. Nothing is judged unless you run this, and exact match stays beside it as `correct_exact`.

  dualread judge answers.csv --model NAME --folder judge                        write judge/requests-001.jsonl
  dualread judge answers.csv --model NAME --folder judge --run --to https://api.example.com/v1 --key EXAMPLE_KEY
  dualread judge answers.csv --model NAME --folder judge --out judged.csv       read judge/responses/*.jsonl

Each distinct question with its answer is asked once. Put the output files of a batch service into judge/responses, or
let --run send the requests, as with `dualread ask`; then give --out as well, or in a call of its own. Answers that the
two judge differently go to disagreements.csv in the folder: look at them before you believe either. A reply that says
neither yes nor no leaves `correct` empty, and `dualread evaluate` counts such rows.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("answers", metavar="ANSWERS", type=Path, help="the table of answers")
    parser.add_argument("--model", required=True, metavar="NAME", help="the name by which the service knows the model")
    parser.add_argument("--folder", required=True, type=Path, help="where requests and responses are, new or not")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the judged table goes: .csv, .tsv, .jsonl, ...")
    parser.add_argument("--grader", default="meaning", metavar="NAME", help="what is asked (%(default)s)")
    parser.add_argument(
        "--alternatives",
        metavar="TEXT",
        help="what separates accepted answers in one text of reference_answer (nothing)",
    )
    parser.add_argument("--body", default="{}", metavar="JSON", help="what is laid over the body of every request")
    add_sending_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Write, send or read what is judged; return 0, or 1 if requests that were sent are not answered."""
    from dualread.apps.ask.sending import write_requests
    from dualread.apps.judge.agreement import AnswersToJudge
    from dualread.apps.text import check_table_suffix, evaluating, write_table

    if options.out is not None:
        check_table_suffix(options.out)
    endpoint = endpoint_of(options)
    folder = options.folder
    answers = AnswersToJudge(
        options.answers,
        grader=options.grader,
        model=options.model,
        body=_body(options.body),
        alternatives=options.alternatives,
    )
    (folder / "responses").mkdir(parents=True, exist_ok=True)
    failed = 0 if endpoint is None else endpoint.send(folder, lambda: [answers.batch(folder)])
    batch = answers.batch(folder)
    n = batch.replied.n_requests
    print(f"{n - batch.replied.n_missing} of {n} distinct answers have a reply")
    for line in batch.replied.why[:3]:
        print(line)
    for file, count in write_requests(folder, [batch]).items():
        print(f"wrote {file}: {count} requests")
    if options.out is not None:
        judged = answers.judged(folder)
        for line in judged.lines:
            print(line)
        listed = folder / "disagreements.csv"
        judged.disagreements.write_csv(listed)
        write_table(judged.table, options.out)
        print(f"wrote {listed}: {len(judged.disagreements)} distinct answers that the two judge differently")
        print(f"wrote {options.out}: {len(judged.table)} rows. Next: {evaluating(judged.table, options.out)}")
    return 1 if failed else 0


def _body(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--body {text}: no JSON ({error}). Expected an object such as '{{\"seed\": 1}}'.") from error
    if not isinstance(body, dict):
        raise ConfigError(f"--body {text}: a {type(body).__name__}, expected an object.")
    return body
