"""Time and memory of a whole study of given answers, as a user would run it: from a table of questions to the report.

    python benchmarks/whole_study.py                                   1,000 questions, two minutes
    python benchmarks/whole_study.py 1000000 --folder /big/disk        an hour on two free cores, 10 GB

The questions are about a fifth as many images of noise; every image gets five of forty wordings. A made-up service
answers at random, so nothing is learned. Five methods, 10,000 resamples. Each line is one command, with its time, its
CPU time without that of forked jobs, and its largest process. Below stand the stages with the largest processes, and
the seconds of each. The results go to results/grown of the repository, the store to the folder.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from dualread.progress import say
from dualread.store.manifest import read_manifest

REPOSITORY = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
METHODS = ("sequence_likelihood", "sc8", "semantic_uncertainty", "question_prior", "question_answer_prior")
WORDINGS = [f"Is there a finding of kind {kind} in the {place}?" for kind in range(10) for place in "abcd"]
PER_IMAGE = 5


def write_questions(folder: Path, n: int) -> None:
    """Write rows.jsonl, and n / 5 pictures of 24 x 24 pixels."""
    draw, noise = random.Random(0), np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    with (folder / "rows.jsonl").open("w") as rows:
        for image in range(n // PER_IMAGE):
            name = f"images/{image}.png"
            Image.fromarray(noise.integers(0, 256, (24, 24), dtype=np.uint8)).save(folder / name, compress_level=1)
            for wording in draw.sample(WORDINGS, PER_IMAGE):
                answer = draw.choice(("yes", "no"))
                rows.write(json.dumps({"question": wording, "reference_answers": [answer], "image": name}) + "\n")


def answer(answers: Path) -> int:
    """Answer every request that has no response yet; return their number."""
    draw, n = random.Random(1), 0
    (answers / "responses").mkdir(exist_ok=True)
    known = {file.stem for file in (answers / "responses").iterdir()}
    for file in sorted(answers.glob("requests-*.jsonl")):
        if file.stem not in known:
            with file.open() as requests, (answers / "responses" / file.name).open("w") as responses:
                for request in map(json.loads, requests):
                    choices = [_choice(draw, i) for i in range(request["body"].get("n", 1))]
                    reply = {"status_code": 200, "body": {"choices": choices}}
                    line = {"custom_id": request["custom_id"], "error": None, "response": reply}
                    responses.write(json.dumps(line) + "\n")
                    n += 1
    return n


def _choice(draw: random.Random, index: int) -> dict[str, object]:
    text, said = draw.choice(("yes", "no")), draw.randrange(50, 101)
    tokens = ["<answer>", text, "</answer>", "<confidence>", str(said), "</confidence>"]
    log_probs = [{"token": token, "logprob": -draw.expovariate(5), "top_logprobs": []} for token in tokens]
    return {
        "index": index,
        "message": {"content": "".join(tokens)},
        "finish_reason": "stop",
        "logprobs": {"content": log_probs},
    }


def run(command: Sequence[str | Path]) -> None:
    """Run a command in a process that has no other children; print what it took."""
    program = (
        "import resource as r, subprocess as s, sys; c = s.call(sys.argv[1:]); u = r.getrusage(r.RUSAGE_CHILDREN);"
    )
    program += "print(c, u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)"
    started = time.monotonic()
    told = subprocess.run(
        [sys.executable, "-c", program, *map(str, command)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    *_, last = told.stdout.splitlines()
    code, cpu, peak = map(float, last.split())
    words = " ".join(str(word).rpartition("/")[2] for word in command[:4])
    print(f"{words:<60}{time.monotonic() - started:>8,.0f} s{cpu:>8,.0f} s CPU{peak:>8,.0f} MB", flush=True)
    if code:
        sys.exit(f"{words}: exit code {code:.0f}")


def peaks(store: Path) -> Iterator[tuple[float, str, float]]:
    """Yield the largest process of every stage in MB, the stage, and the seconds of all its artifacts."""
    found: dict[str, list[tuple[float, float]]] = {}
    for file in store.glob("*/*/RECORD.json"):
        record, manifest = json.loads(file.read_bytes()), read_manifest(file.with_name("MANIFEST.json"))
        found.setdefault(manifest.action.stage, []).append((record["peak_memory_mb"], record["seconds"]))
    for stage, of in found.items():
        yield max(peak for peak, _ in of), stage, sum(seconds for _, seconds in of)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=int, nargs="?", default=1_000)
    parser.add_argument("--folder", type=Path, help="where everything is written; by default a temporary folder")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="whole-study") as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        data, answers, study, store = (folder / name for name in ("data", "answers", "grown.yaml", "store"))
        if not data.exists():
            say(f"writing {options.questions:,} questions")
            write_questions(data, options.questions)
        study.unlink(missing_ok=True)
        shares = ("--shares", "train=.2", "validation=.2", "test=.6")
        run(
            [
                BIN / "dualread",
                "new",
                "grown",
                "--model",
                "m",
                "--answers",
                answers,
                "--data",
                data,
                "--out",
                study,
                *shares,
            ]
        )
        (folder / "few.yaml").write_text(f"store: {store}\nonly: {{methods: [{', '.join(METHODS)}]}}\n")
        files = [study, folder / "few.yaml"]
        snakemake = [BIN / "snakemake", "--cores", str(options.cores), "--configfile", *files]
        snakemake = [*snakemake, "--quiet", "--"]
        run([*snakemake, "questions"])
        for _ in range(2):
            run([BIN / "dualread", "ask", *files])
            say(f"answered {answer(answers):,} requests")
        run([*snakemake, "all"])
        for peak, stage, seconds in sorted(peaks(store), reverse=True)[:10]:
            print(f"{stage:<60}{seconds:>8,.0f} s{'':>14}{peak:>8,.0f} MB")
    print(f"largest process of all commands: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
