import re
import shutil
import sys
from pathlib import Path

import pytest

from dualread.apps import main as program
from dualread.apps.explain import schema as schema_command
from dualread.schema.columns import all_schemas
from dualread.store.place import find_target
from dualread.store.store import Store
from tests import golden
from tests.library_copy import LibraryCopy

ROOT = Path(__file__).resolve().parents[2]


def _dualread(library, *arguments):
    return library.call([sys.executable, "-m", "dualread", *arguments])


def test_schema_prints_every_column_and_an_unknown_table_fails_with_the_nearest(capsys):
    assert program.main(["schema"]) == 0
    printed = capsys.readouterr().out
    for table, schema in all_schemas().items():
        assert f"{table}.parquet\n" in printed
        assert all(f"  {name}" in printed and column.meaning in printed for name, column in schema.columns.items())
    assert program.main(["schema", "metrics"]) == 0
    printed = capsys.readouterr().out
    assert "Float64 or null" in printed
    assert "pairs.parquet" not in printed
    assert program.main(["schema", "predicitons"]) == 1
    said = capsys.readouterr().err.rstrip()
    assert f"predicitons: no such table. Known: {', '.join(all_schemas())}, study, " in said
    assert said.endswith("Did you mean 'predictions'?")


def test_the_help_fits_a_screen_and_names_every_verb_once_evaluate_first(capsys):
    with pytest.raises(SystemExit):
        program.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) < 80
    folder = Path(program.__file__).parent
    modules = [path for path in folder.rglob("*.py") if "\nHELP = " in path.read_text()]
    verbs = [path.parent.name if path.stem == "__init__" else path.stem for path in modules]
    found = [match[1] for line in lines if (match := re.match(r"(?:\w+ +| {7})(\w+)  +\S", line))]
    assert found[0] == "evaluate"
    assert sorted(found) == sorted(verbs)
    for words in (*([verb] for verb in verbs), *(["store", word] for word in ("copy", "restore", "lock"))):
        with pytest.raises(SystemExit) as stop:
            program.main([*words, "--help"])
        assert stop.value.code == 0
        assert len(capsys.readouterr().out.splitlines()) > 8


def test_plan_reads_the_study_of_the_current_directory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert program.main(["plan"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"dualread plan: {tmp_path}: no config.yaml here. ")
    assert len(said.splitlines()) == 1
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    text = (ROOT / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(text.replace("\nstudy: embedded ", "\nstudy: mine ", 1))
    assert program.main(["plan"]) == 0
    assert capsys.readouterr().out.startswith("study mine\n")


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "dualread schema: interrupted. Run the same command to continue.\n"),
        (OSError(30, "Read-only file system", "restored"), 1, "dualread schema: [Errno 30] Read-only file system: 're"),
    ],
)
def test_interrupts_and_system_errors_are_reported_without_a_traceback(monkeypatch, capsys, raised, code, said):
    def ends(options):
        raise raised

    monkeypatch.setattr(schema_command, "run", ends)
    assert program.main(["schema"]) == code
    assert capsys.readouterr().err.startswith(said)


# Conversations about the small study of a library that is edited; main.txt has what is said. A text is a command, or
# stands for the command that the last answer asks to run.
FOLLOW = "the command that it names"
JOINED, PUSH = "results/study/joined", "store copy results/store shared"


def edit(file, old, new):
    return lambda library: library.edit(file, old, new)


def both(**changes):
    return lambda library: library.both(**changes)


def damage(library):
    path = library.root / "results/study/text/text.txt"
    path.chmod(0o644)
    path.write_text("Jello")


def lose(library):
    """Remove the entry of the text that `joined` is made from."""
    store = Store(library.root / "results/store")
    (key,) = find_target(str(library.root / JOINED), store).manifest.input_keys.values()
    shutil.rmtree(store.entry(key))


def make_tables(library):
    for name in ("main", "paired"):
        entry = {"spec": {"voice": {"module": "voices.loud"}}, "output": f"results/study/tables/{name}"}
        assert library.run("join_texts", [entry]).returncode == 0


def lose_all_but_the_lock(library):
    (library.root / "results/study/results.lock").rename(library.root / "paper.lock")
    shutil.rmtree(library.root / "results")


def is_restored(library):
    assert (library.root / "restored/results/study/tables/main/text.txt").is_file()


AGAIN = edit("words.py", "text.strip()", "text.strip() + '!'")
CONVERSATIONS = {
    "an edit that changed no file": [edit("words.py", "text.strip()", "str(text.strip())"), both(), f"verify {JOINED}"],
    "code that was edited back": [
        *(AGAIN, both(), edit("words.py", "text.strip() + '!'", "text.strip()"), f"verify {JOINED}"),
    ],
    "damage and a missing entry": [damage, f"verify {JOINED}/text.txt", PUSH, lose, f"verify {JOINED}"],
    "the lineage, and why": [
        *(f"explain {JOINED}", "explain results/study/text --why", AGAIN, f"explain {JOINED}", both()),
        *("explain results/study/text --why", f"explain --why {JOINED}", FOLLOW, both(text="Bye")),
        "explain results/study/text --why",
    ],
    "missing inputs of a target": [
        *("store lock results/study", lose, f"{PUSH} --of {JOINED}", f"{PUSH} --of results/study/results.lock"),
        *(both(), f"{PUSH} --of {JOINED}", lose, f"{PUSH} --of {JOINED}"),  # computed again; the target has it
    ],
    "locked tables, or some, after an edit": [
        *(make_tables, "store lock results/study", PUSH, lose_all_but_the_lock),
        *(edit("voices/loud.py", "upper", "title"), "store restore paper.lock"),
        *("store copy shared results/store --of paper.lock --only tables", "store restore paper.lock", is_restored),
        "store restore paper.lock --store shared --to some --only tables/main",
        "store restore paper.lock --store shared --to some --only tables/mai",
    ],
}


def numbered(text):
    """Return a text with numbers in place of its keys, whose digits depend on all code."""
    keys: dict[str, str] = {}

    def number(key):
        return keys.setdefault(key[1], f"KEY{len(keys)}")

    return re.sub(r"\b(?:[0-9a-f]{2}/)?([0-9a-f]{8})[0-9a-f]{0,56}\b", number, text)


def test_what_is_said_of_results_and_stores(tmp_path):
    found = {}
    for number, (name, steps) in enumerate(CONVERSATIONS.items()):
        library = LibraryCopy(tmp_path / str(number))
        assert library.both() == ["computed", "computed"]
        said = []
        for step in steps:
            if isinstance(step, str):
                if step == FOLLOW:
                    step = said[-3].partition("to see why, run: dualread ")[2].partition("\n")[0]
                done = _dualread(library, *step.split())
                said += [f"$ {step}", done.stdout, done.stderr, f"-> {done.returncode}"]
            else:
                step(library)
        text = "\n".join(part.rstrip() for part in said if part.rstrip()).replace(str(library.root), ".")
        found[name] = re.sub(r"\d+\.\d s\b", "0.0 s", numbered(text))
    golden.check(Path(__file__).with_name("main.txt"), found)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["pln"], "'plan'"),
        (["store", "cop", "elsewhere"], "'copy'"),
        (["plan", "--confgfile", "mine.yaml"], "'--configfile'"),
        (["explain", "tables/main.tex", "--sell", "slake"], "'--cell'"),
        (["evaluate", "mine.csv", "--clutser=patient"], "'--cluster'"),
        (["gc", "--delet"], "'--delete'"),  # an option has to be written in full
    ],
)
def test_the_nearest_verb_or_option_is_suggested(arguments, meant, capsys):
    with pytest.raises(SystemExit) as stop:
        program.main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith(f"Did you mean {meant}?")


def test_an_invalid_target_is_reported_and_the_nearest_is_suggested(tmp_path, monkeypatch, capsys):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/main.tex").write_text("% study: mine\n")
    (tmp_path / "results/embedded").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for words, meant in (
        (["verify", "tables/mian.tex"], "tables/main.tex"),
        (["verify", "tabels/main.tex"], "tables/main.tex"),
        (["store", "lock", "results/embeded"], "results/embedded"),
        (["verify", "nowhere"], None),
        (["verify", ""], None),
    ):
        assert program.main(words) == 1
        said = capsys.readouterr().err.rstrip()
        assert said.startswith(f"dualread {words[0]}: ")
        assert meant is None or said.endswith(f"Did you mean '{meant}'?")
    assert not (tmp_path / "results/embeded").exists()
