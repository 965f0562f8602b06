"""A study about given answers, which are those of the smoke study: its confidences have equal bytes."""

import json
import math
import random
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from dualread.apps import main as program
from dualread.apps.ask.study import Asking
from dualread.study.files import load
from tests.service import completion, serving
from tests.workflow.checkout import Checkout
from tests.workflow.exported import Source, responses, stored, write

pytestmark = pytest.mark.rest

RUN, GIVEN = "qwen3-vl-tiny/rlvr/17", "qwen3-vl-tiny/rlvr/0"
SMOKE = Path("workflow/studies/smoke.yaml")
STUDY = """
study: given
only: {backbones: [qwen3-vl-tiny], actors: [rlvr]}
actors:
  rlvr: {training: null, reward: null, settings: null, answers: {folder: ../answers}}
figures: {training: null}
"""
STATES = {"saplma", "bicr", "psr", "p_state", "per", "dualread"}


@pytest.fixture(scope="module")
def given(study: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The finished study of given answers, in a copy of the smoke study, whose questions it shares."""
    folder = tmp_path_factory.mktemp("given") / "checkout"
    shutil.copytree(study.folder, folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    checkout = Checkout(folder=folder)
    (folder / "given.yaml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        files = [SMOKE, Path("given.yaml")]
        assert run(checkout, "questions").returncode == 0
        asking = Asking(load(files, Path()), files)
        source = Source(Path("results/smoke"), RUN, load([SMOKE], Path()))
        for part in ("first", "about_them"):  # the second time, what is asked about the answers of the first
            lines = responses(asking, Path("../answers"), source, source.exact)
            assert write(Path(f"../answers/responses/{part}.jsonl"), lines)
    done = run(checkout)
    assert done.returncode == 0, done.text
    return checkout


def run(checkout: Checkout, *arguments: str):
    return checkout.snakemake(*arguments, study=f"{SMOKE} given.yaml")


def predictions(checkout: Checkout, study: str, run: str, method: str) -> pl.DataFrame:
    folder = checkout.folder / "results" / study / "predictions" / run / method
    return pl.read_parquet(folder / "predictions.parquet")


def methods(checkout: Checkout) -> set[str]:
    return {path.name for path in (checkout.folder / "results/given/predictions" / GIVEN).iterdir()}


def test_every_method_without_states_has_equal_bytes_of_confidences(given):
    assert {"rlvr", "sequence_likelihood", "p_true", "self_probing", "prompt_ensemble", "sc8"} < methods(given)
    for method in methods(given):
        found = predictions(given, "given", GIVEN, method)
        expected = predictions(given, "smoke", RUN, method)
        if method == "sequence_likelihood":  # of a forced completion, nothing is known on the donor's image
            expected = expected.filter(pl.col("condition") != "donor_fixed_prefix")
        assert len(found) > 0
        for column in ("sample_id", "condition", "imputed"):
            assert found[column].equals(expected[column]), method
        for column in ("score", "confidence"):
            assert found[column].to_numpy().tobytes() == expected[column].to_numpy().tobytes(), (method, column)


@pytest.mark.long  # the test before shows what full precision gives: equal bytes
def test_log_probabilities_of_32_bits_change_the_likelihood_in_its_last_digits(given, monkeypatch):
    """What the parquet files of a study keep is enough for all but the last digits of one method."""
    folder = given.folder
    monkeypatch.chdir(folder)
    files = [SMOKE, Path("given.yaml")]
    asking = Asking(load(files, Path()), files)
    kept = Path("../answers")
    moved = kept.rename("../exact")
    try:
        source = Source(Path("results/smoke"), RUN, load([SMOKE], Path()))
        for part in ("first", "about_them"):
            write(kept / f"responses/{part}.jsonl", responses(asking, kept, source, stored))
        target = f"results/given/predictions/{GIVEN}/sequence_likelihood/MANIFEST.json"
        before = predictions(given, "given", GIVEN, "sequence_likelihood")
        done = run(given, target)
        assert done.returncode == 0, done.text
        after = predictions(given, "given", GIVEN, "sequence_likelihood")
        assert (after["confidence"] - before["confidence"]).abs().max() < 1e-5
        assert not after["confidence"].equals(before["confidence"])
    finally:
        shutil.rmtree(kept)
        moved.rename(kept)
    assert run(given).returncode == 0


def test_methods_that_need_states_are_left_out_with_the_reason(given):
    assert not STATES & methods(given)
    page = (given.folder / "results/given/report.html").read_text()
    assert "The answers of rlvr are given" in page
    assert "bicr, p_state, per, psr, saplma: it reads hidden states or single tokens, which given answers lack" in page
    assert "dualread: it builds on psr, which is left out" in page


def test_every_table_figure_and_page_is_there(given, monkeypatch, capsys):
    monkeypatch.chdir(given.folder)
    config = load([SMOKE, Path("given.yaml")], Path())
    for table in config.tables:
        assert Path(f"tables/{table}.tex").read_text().startswith("% study: given\n"), table
    for figure in config.figures:
        assert Path(f"results/given/figures/{figure}/{figure}.pdf").exists(), figure
    assert run(given).did_nothing()
    for verb in (
        ["browse", "results/given", "--out", "browse.html"],
        ["evaluate", f"results/given/answers/{GIVEN}/answers.parquet", "--method", "sc8"],
        ["verify", "tables/main.tex"],
        ["explain", "tables/main.tex"],
        ["plan", "--configfile", str(SMOKE), "given.yaml"],
    ):
        assert program.main(verb) == 0, (verb, capsys.readouterr())
    assert "left out of rlvr: psr: it reads hidden states" in capsys.readouterr().out


def test_the_metrics_are_those_of_the_study_that_made_the_answers(given):
    """Costs are not measured, because nobody here made the answers."""
    of = {}
    for study, seed in (("smoke", 17), ("given", 0)):
        metrics = pl.read_parquet(given.folder / f"results/{study}/metrics/metrics.parquet")
        rows = metrics.filter(backbone="qwen3-vl-tiny", actor="rlvr", seed=seed, method="p_true", metric="auroc")
        of[study] = rows.sort("dataset", "split", "subset")["estimate"].to_list()
        assert metrics.filter(pl.col("metric").str.starts_with("cost_"), seed=seed).is_empty() == (study == "given")
    assert of["given"] == of["smoke"] != []


def test_a_reader_of_given_answers_answers_no_next_question(given, monkeypatch, capsys):
    monkeypatch.chdir(given.folder)
    reader = f"results/given/readers/{GIVEN}/sequence_likelihood"
    image = next(Path("results/given/manifests/slake/test/images").iterdir())
    actor = f"results/smoke/actors/{RUN}"
    asked = ["score", "--reader", reader, "--checkpoint", actor, "--image", str(image), "--question", "Is it?"]
    assert program.main(asked) == 1
    assert "was fitted on given answers, and there is no checkpoint that could answer" in capsys.readouterr().err


def talkative(number, body):
    """A service whose replies have the right form, and are drawn by chance."""
    text, draw = body["messages"][0]["content"][1]["text"], random.Random(number)
    if "Respond with a single word" in text:
        share = draw.uniform(0.1, 0.8)
        top = [{"token": "Yes", "logprob": math.log(share)}, {"token": "No", "logprob": math.log(0.9 - share)}]
        return completion("Yes", logprobs={"content": [{**top[0], "top_logprobs": top}]})
    if "Proposed answer" in text:
        return completion(str(draw.randrange(101)))
    answers = ["yes", "no"] if "lesion" in text else ["left", "right"]
    replies = [
        f"<answer>{draw.choice(answers)}</answer><confidence>{draw.randrange(101)}</confidence>"
        for _ in range(body["n"])
    ]
    logprobs = {"content": [{"token": replies[0], "logprob": -draw.random()}]} if body.get("logprobs") else None
    return completion(*replies, logprobs=logprobs)


# tests/apps/new writes such a study, tests/apps/ask sends it to a service, and `given` goes on to the report.
@pytest.mark.long
def test_a_new_study_goes_from_a_table_of_questions_to_its_report(tmp_path, monkeypatch, capsys):
    checkout = Checkout.create(tmp_path / "checkout")
    draw, rows = random.Random(0), []
    (tmp_path / "questions/img").mkdir(parents=True)
    for k in range(60):
        Image.frombytes("L", (32, 32), draw.randbytes(1024)).save(tmp_path / f"questions/img/{k}.png")
        rows += [(f"img/{k}.png", "Is there a lesion?", draw.choice(["yes", "no"]))]
        rows += [(f"img/{k}.png", "Which side?", draw.choice(["left", "right"]))]
    table = tmp_path / "questions/table.csv"
    pl.DataFrame(rows, schema=("image", "question", "reference_answers"), orient="row").write_csv(table)
    monkeypatch.chdir(checkout.folder)
    monkeypatch.setenv("MY_KEY", "secret")
    shares = ["--shares", "train=.5", "validation=.25", "test=.25"]
    model = ["--model", "api/some-model", "--answers", "../answers"]
    assert program.main(["new", "mine", *model, "--data", str(table), *shares]) == 0
    assert checkout.snakemake("questions", study="mine.yaml").returncode == 0
    with serving(talkative) as service:
        sending = ["--run", "--to", service.address, "--key", "MY_KEY", "--per-minute", "60000"]
        assert program.main(["ask", "mine.yaml", *sending]) == 0, capsys.readouterr().err
    done = checkout.snakemake(study="mine.yaml")
    assert done.returncode == 0, done.text
    assert "The answers of base are given" in Path("results/mine/report.html").read_text()
    assert (
        program.main(["evaluate", "results/mine/answers/some-model/base/0/answers.parquet", "--method", "p_true"]) == 0
    )
    assert "auroc" in capsys.readouterr().out


def test_what_is_missing_stops_the_study_with_one_sentence(given, tmp_path):
    """A response is taken away, and one is cut off."""
    file = given.folder.parent / "answers/responses/first.jsonl"
    whole = file.read_text()
    lines = whole.splitlines(keepends=True)
    assert json.loads(lines[0])["custom_id"]
    try:
        file.write_text("".join([*lines[1:-1], lines[-1][:40]]))
        done = run(given)
        assert done.returncode != 0
        assert re.search(r"slake/train/original: 1 of \d+ requests are not answered in", done.text)
        assert "(1: no response; 1 lines are no response, such as first.jsonl:" in done.text
        assert "`dualread ask` writes what is still to be asked" in done.text
    finally:
        file.write_text(whole)
