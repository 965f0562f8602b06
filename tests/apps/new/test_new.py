"""`dualread new` as users run it, in the folder of the repository."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dualread.apps import main as program
from dualread.apps.new.data import _two_are_disjoint
from dualread.study.files import load
from tests.apps.new.checkpoints import checkpoint

ROOT = Path(__file__).parents[3]
EXPORT = ["--columns", "question=Frage", "reference_answers=Antwort", "image=Bild"]
SHARES = ["--shares", "train=.6", "validation=.2", "test=.2"]


def export(folder, *, answers=("ja", "nein")):
    """A table as Excel saves it in Germany, of two questions about each of ten images."""
    (folder / "img").mkdir(parents=True)
    lines = ["Bild;Frage;Antwort;Arzt"]
    for k in range(10):
        (folder / f"img/{k}.png").write_bytes(b"pixels")
        lines += [f"img\\{k}.png;Liegt eine Läsion vor?;{answers[k % 2]};A", f"img\\{k}.png;Organ {k}?;Leber;"]
    (folder / "export.csv").write_bytes("\r\n".join(lines).encode("cp1252"))
    return folder / "export.csv"


@pytest.fixture
def new(tmp_path, monkeypatch, capsys):
    """Run `dualread new mine`; return the exit code, what was printed, and the file."""
    monkeypatch.chdir(ROOT)
    model = checkpoint(tmp_path / "My Model")

    def run(data, *options, name="mine", model=model):
        out = tmp_path / "mine.yaml"
        code = program.main(["new", name, "--model", str(model), "--data", str(data), "--out", str(out), *options])
        said = capsys.readouterr()
        return code, said.out + said.err, out

    return run


def test_a_study_of_an_excel_table_is_planned(new, tmp_path, capsys):
    code, said, out = new(export(tmp_path / "q"), *EXPORT, *SHARES)
    assert code == 0
    for line in (
        f"{tmp_path}/q/export.csv: 20 rows (semicolons, windows-1252)",
        "columns: question is 'Frage', reference_answers is 'Antwort', image is 'Bild'",
        "columns that are not read: Arzt",
        "train: 12 questions (12 open, 0 closed) about 6 images",
        "test: 4 questions (4 open, 0 closed) about 2 images",
        "images: 10 of 10 files found",
        f"{tmp_path}/My Model: qwen3_vl, 2.13 billion parameters, 65536 to 1310720 pixels of an image",
    ):
        assert line in said.splitlines()
    text = out.read_text()
    for line in ("# How far can the answers of My Model be trusted?", f"dualread plan --configfile {out}"):
        assert line in text
    assert all(f"#   {line}\n" in text for line in said.splitlines()[:8])
    study = load([out], ROOT)
    assert list(study.datasets) == ["mine"]
    assert list(study.backbones) == ["my-model"]
    assert list(study.actors) == ["base"]
    assert {method.actor for method in study.methods.values()} == {"base"}
    assert {"main", "significance", "intervals"} <= set(study.tables)
    assert program.main(["plan", "--configfile", str(out)]) == 0
    assert "mine      train              12       6  the rows in" in capsys.readouterr().out


@pytest.mark.rest
def test_snakemake_takes_the_study(new, tmp_path):
    _, _, out = new(export(tmp_path / "q"), *EXPORT, *SHARES)
    command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "--configfile", out, "--directory", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_recurring_questions_there_are_no_donors(new, tmp_path):
    code, said, out = new(export(tmp_path / "q", answers=("ja", "ja")), *EXPORT, *SHARES)
    assert code == 0
    assert "there will be no CCG-AUC" in said
    study = load([out], ROOT)
    assert study.datasets["mine"].pairing is None
    assert "counterfactuals" not in study.figures
    assert program.main(["plan", "--configfile", str(out)]) == 0


def test_one_table_per_split_needs_no_options(new, tmp_path):
    (tmp_path / "q").mkdir()
    for split, n in (("train", 3), ("validation", 1), ("test", 2)):
        columns = {"question": ["Which?"] * n, "reference_answers": ["yes"] * n}
        columns["image"] = [f"{split}{k}.png" for k in range(n)]
        pl.DataFrame(columns).write_ndjson(tmp_path / f"q/{split}.jsonl")
    code, said, out = new(tmp_path / "q")
    assert code == 0
    assert "test: 2 questions (0 open, 2 closed) about 2 images" in said
    assert "images: 0 of 6 files found; the study fails without the others: " in said
    assert load([out], ROOT).datasets["mine"].settings == {}


def test_a_column_that_may_hold_ids_is_offered(new, tmp_path):
    rows = [{**row, "QID": f"q{k}", "index": k} for k, row in enumerate(golds("a", "b", "c"))]
    folder = _tables(tmp_path / "q", *rows)
    said = new(folder)[1].splitlines()
    assert "ids are digests of the rows; --columns id=QID takes those of the table" in said
    (tmp_path / "mine.yaml").unlink()
    code, said, out = new(folder, "--columns", "id=QID")
    assert code == 0
    assert "ids are digests" not in said
    assert load([out], ROOT).datasets["mine"].settings["columns"] == {"id": "QID"}
    (tmp_path / "mine.yaml").unlink()
    assert "ids are digests" not in new(_tables(folder, *({**row, "id": row["QID"]} for row in rows)))[1]


def test_tables_of_other_names_are_named(new, tmp_path):
    (tmp_path / "q/data").mkdir(parents=True)
    for split in ("train", "val", "test"):
        row = {"question": "?", "answer": split, "image": {"bytes": split.encode(), "path": None}, "pages": 3}
        pl.DataFrame([row]).write_parquet(tmp_path / f"q/data/{split}-00000-of-00001.parquet")
    code, said, _ = new(tmp_path / "q")
    assert code == 1
    assert "no table is named train, validation, test or rows. Found: data/test-00000-of-00001.parquet, data/tr" in said
    files = ["--files", *(f"{split}=data/{split[:3]}*.parquet" for split in ("train", "validation", "test"))]
    code, said, _ = new(tmp_path / "q", *files)
    assert code == 1
    assert "If this is meant, add: --columns reference_answers=answer" in said
    code, said, out = new(tmp_path / "q", *files, "--columns", "reference_answers=answer")
    assert code == 0
    assert "images: in the table" in said
    assert load([out], ROOT).datasets["mine"].settings["files"]["validation"] == "data/val*.parquet"


def test_a_data_set_of_the_hub_is_copied_into_a_folder(new, tmp_path, monkeypatch):
    import huggingface_hub

    class Info:
        sha = "a" * 40

    def copied(name, *, repo_type, revision, local_dir):
        assert (name, repo_type, revision) == ("me/mine", "dataset", Info.sha)
        export(local_dir)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda self, name, revision: Info())
    monkeypatch.setattr(huggingface_hub, "snapshot_download", copied)
    assert "say where to copy it to: --download FOLDER" in new("hf://me/mine")[1]
    options = ["--download", str(tmp_path / "copy"), "--files", "rows=export.csv", *EXPORT, *SHARES]
    code, _, out = new("hf://me/mine@main", *options)
    assert code == 0
    source = load([out], ROOT).datasets["mine"].source
    assert (source.hub, source.revision, source.folder) == ("me/mine", "a" * 40, str(tmp_path / "copy"))


def test_nothing_is_guessed_or_written(new, tmp_path):
    table = export(tmp_path / "q")
    for options, message in [
        ([], "no column question, reference_answers, image. Found: Bild, Frage, Antwort, Arzt. If this is meant, add:"
         " --columns question=Frage reference_answers=Antwort image=Bild"),
        (EXPORT, "no column `split` says which are for training. Add --shares train=.6"),
        ([*EXPORT, "--shares", "train=.6", "validation=.2", "test=.3"], "--shares: they add up to 1.1, expected 1."),
        ([*EXPORT, "--shares", "train=x"], "--shares train=x: could not convert string to float: 'x'"),
        ([*EXPORT[:-1], "image"], "--columns image: expected NAME=VALUE."),
        ([*EXPORT, "image=Arzt"], "--columns image=Arzt: image=Bild is there, too. Give each name once."),
        ([*EXPORT[:-1], "image=Bidl", *SHARES], "no column 'Bidl', which settings.columns.image names"),
        (["--download", "x"], "is not on the hub"),
    ]:  # fmt: skip
        code, said, out = new(table, *options)
        assert (code, len(said.splitlines())) == (1, 1)
        assert message in said
        assert not out.exists()


def test_what_is_there_already_or_would_leak_is_refused(new, tmp_path):
    table = export(tmp_path / "q")
    assert "config.yaml has a data set of this name" in new(table, *EXPORT, *SHARES, name="slake")[1]
    new(table, *EXPORT, *SHARES)
    assert "exists already" in new(table, *EXPORT, *SHARES)[1]
    (tmp_path / "mine.yaml").unlink()
    rows = [{"question": "?", "reference_answers": "a", "image": "a.png", "split": s} for s in ("train", "test")]
    rows.append({**rows[0], "image": "b.png", "split": "validation"})
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "1 images are in several splits, such as a.png" in new(tmp_path)[1]
    table.write_bytes(table.read_bytes() + b"\r\n" + table.read_bytes().split(b"\r\n")[1])
    assert re.search(r"2 rows of \w+ repeat the id of another, such as ", new(table, *EXPORT, *SHARES)[1])


def test_a_service_may_answer(new, tmp_path, capsys):
    answers = tmp_path / "answers"
    options = [*EXPORT, *SHARES, "--answers", str(answers)]
    code, said, out = new(export(tmp_path / "q"), *options, model="owner/Some-Model.1")
    assert code == 0
    assert f"owner/Some-Model.1: a service answers; {answers}: no responses are there yet" in said.splitlines()
    assert f"  snakemake --cores 2 --configfile {out} -- questions" in said.splitlines()
    assert f"  dualread ask {out}" in said.splitlines()
    assert f"#     dualread ask {out}\n" in out.read_text()
    study = load([out], ROOT)
    assert study.backbones["some-model.1"].source.service == "owner/Some-Model.1"
    assert study.actors["base"].answers.folder == str(answers)
    assert {"rlvr", "sequence_likelihood", "p_true", "sc8", "question_prior"} <= set(study.methods)
    assert "psr" in study.left_out["base"]
    assert {"main", "data", "thresholds", "intervals"} <= set(study.tables)
    assert study.tables["main"].without is None
    assert program.main(["plan", "--configfile", str(out)]) == 0
    planned = capsys.readouterr().out
    assert "left out of base: psr: it reads hidden states or single tokens, which given answers lack" in planned
    # 20 answers; the 8 to validation and test also 8 samples, P(True), and self-probing in 4 wordings: 20 + 8 * 13
    assert re.search(r"read_answers +1 +124  given completions", planned)


def test_images_that_cannot_be_read_are_found_here(new, tmp_path):
    table = export(tmp_path / "q")
    for k in range(10):
        Image.fromarray(np.full((4, 4), 1000 + 200 * k, dtype=np.uint16)).save(tmp_path / f"q/img/{k}.png")
    said = new(table, *EXPORT, *SHARES)[1]
    assert "images: 10 of 10 files found" in said
    assert "images that cannot be read, or show little" in said
    assert "12 would fit" in said
    (tmp_path / "mine.yaml").unlink()
    code, said, out = new(table, *EXPORT, *SHARES, "--bits", "12")
    assert code == 0
    assert "would fit" not in said
    assert load([out], ROOT).datasets["mine"].bits == 12
    (tmp_path / "mine.yaml").unlink()
    (tmp_path / "q/img/0.png").write_bytes(b"\0" * 128 + b"DICM")
    assert "1 of 10 images are DICOM" in new(table, *EXPORT, *SHARES)[1]


def _tables(folder, *rows, name="rows.jsonl"):
    folder.mkdir(exist_ok=True)
    splits = ("train", "validation", "test")
    rows = [{"image": f"{k}.png", "split": splits[k % 3], "question": "Which?"} | row for k, row in enumerate(rows)]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


LIVER = {"options": ["liver", "lung", "heart"]}
NUMBERS = [{"reference_answers": n, **LIVER} for n in (1, 2, 0, 1, 1, 1)]  # 0, which only the test split has, tells
FROM_0 = {"gold": "number from 0"}


def golds(*answers):
    return [{"reference_answers": answer} for answer in answers]


@pytest.mark.parametrize(
    ("rows", "options", "words", "setting"),
    [
        (NUMBERS, [], "train: 2 rows: the gold answer names an option by its number, from 0", FROM_0),
        (NUMBERS, [], "test: 2 questions with options (2 with 3)", FROM_0),
        (NUMBERS[:1] * 3, [], "(dualread new: --gold)", None),  # what may mean two things is asked for by an option
        (NUMBERS[:1] * 3, ["--gold", "number from 1"], "", {"gold": "number from 1"}),
        (golds(True, True, True), [], "(dualread new: --booleans)", None),
        (golds(True, True, True), ["--booleans", "yes/no"], "test: 1 questions (0 o", {"booleans": "yes/no"}),
        (golds("A", "B", "C", "", "D", "E"), [], "train: 1 questions have an em", {}),
        (golds(*"ABCADE"), [], "test: 2 gold answers are single letters", {}),
        (golds(0, 0, 0, 1, 1, 1), [], "test: 2 gold answers are 0 or 1, and nothing else", {}),
    ],
)
def test_what_gold_answers_mean_is_found_from_all_splits_or_asked_for(new, tmp_path, rows, options, words, setting):
    code, said, out = new(_tables(tmp_path / "q", *rows), *options)
    assert words in said
    assert code == (setting is None)
    if setting is not None:
        found = load([out], ROOT).datasets["mine"].settings
        assert {name: found[name] for name in setting} == setting


def test_control_tokens_of_the_model_are_refused(new, tmp_path, capsys):
    model = checkpoint(tmp_path / "other")
    token = {"id": 5, "content": "<odd>", "special": True}
    tokens = [token, {**token, "content": "lesion", "special": False}]
    (model / "tokenizer.json").write_text(json.dumps({"added_tokens": tokens}))
    folder = _tables(tmp_path / "q", *[{"reference_answers": "a", "question": "A lesion?"}] * 3)
    assert new(folder, model=model)[0] == 0
    (tmp_path / "mine.yaml").unlink()
    _tables(folder, *[{"reference_answers": "a", "question": "<odd> Which?"}] * 3)
    code, said, out = new(folder, model=model)
    assert (code, out.exists()) == (1, False)
    assert "train: row 0: the text '<odd> Which?' contains the model's control token '<odd>'" in said
    _tables(folder, *[{"reference_answers": "a", "question": "<image>\nWhich?"}] * 3)
    assert "contains the control token '<image>'" in new(folder, model=model)[1]
    _tables(folder, *[{"reference_answers": "a"}] * 3)
    _, _, out = new(folder, model=model)
    _tables(folder, *[{"reference_answers": "a", "question": "<|im_start|>Which?"}] * 3)  # after the study was written
    assert program.main(["plan", "--configfile", str(out)]) == 1
    assert "contains the control token '<|im_start|>'" in capsys.readouterr().err


def test_names_of_columns_cannot_leave_the_comments_of_the_study(new, tmp_path):
    rows = [{"reference_answers": "a", "note\nstudy: other\n\x1b[31m": 1}] * 3
    code, said, out = new(_tables(tmp_path / "q", *rows))
    assert code == 0
    assert "\x1b" not in said + out.read_text()
    assert "\nstudy: other" not in out.read_text()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([["liver"]] * 4000, False),
        ([["liver", f"liver {k}"] for k in range(4000)], False),
        ([*([["liver", f"liver {k}"] for k in range(3999)]), ["lung"]], True),
        ([["a", "b"], ["b", "c"], ["a", "c"]] * 1000, False),
        ([["a", "b"], ["b", "c"], ["a", "c"], ["d", "a"]] * 1000, True),
    ],
)
def test_recurring_questions_are_found_in_linear_time(answers, expected):
    """Pairs of sets without a common element: {d, a} and {b, c}; every two of {a, b}, {b, c}, {a, c} have one."""
    sets = [frozenset({(str(k),), *golds}) for k, golds in enumerate(answers)]
    assert _two_are_disjoint(sets) is expected
    small = sets[:60]
    slow = any(one.isdisjoint(other) for one in small for other in small)
    assert _two_are_disjoint(small) is slow


def test_links_that_lead_out_of_the_folder_are_said(new, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/0.png").write_bytes(b"pixels")
    folder = _tables(tmp_path / "q", *({"reference_answers": "a", "image": f"img/{k}.png"} for k in range(3)))
    (folder / "img").symlink_to(tmp_path / "elsewhere")
    said = new(folder)[1]
    assert f"images: 1 are behind links out of {folder}, such as {folder}/img/0.png; they are read" in said
