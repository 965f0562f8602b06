import json
import os
import py_compile
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

from tests.library_copy import LibraryCopy

_TEXT = {"spec": {"text": "Hello"}, "output": "results/study/text"}


@pytest.fixture
def library(tmp_path):
    return LibraryCopy(tmp_path)


def test_a_miss_computes_and_a_hit_links(library):
    done = library.run("write_text", [_TEXT])
    assert done.returncode == 0
    line = done.stderr.splitlines()[-1]
    assert line.startswith("[write_text] results/study/text: computed in ")
    assert line.endswith(": wrote 1 text")
    key = json.loads((library.root / "results/study/text/MANIFEST.json").read_text())["key"]
    assert key[:8] in line
    (library.root / "results/study/text/MANIFEST.json").unlink()  # as Snakemake does before a job
    again = library.run("write_text", [_TEXT])
    assert again.stderr == f"[write_text] results/study/text: hit {key[:8]}\n"
    assert (library.root / "results/study/text/text.txt").read_text() == "Hello"
    assert (library.root / "results/study/text/MANIFEST.json").exists()


def test_a_hit_imports_neither_the_stage_nor_anything_heavy(library):
    library.write("words.py", "import numpy, polars\n\n\ndef decorate(text):\n    return text\n")
    program = textwrap.dedent("""
        import sys
        from dualread.store.run import main
        assert main(sys.argv[1:]) == 0
        print(*sorted({"torch", "polars", "numpy", "tqdm", "dualread.stages.write_text"} & set(sys.modules)))
    """)
    command = [sys.executable, "-c", program, *library.command("write_text", [_TEXT])[3:]]
    assert library.call(command).stdout == "dualread.stages.write_text numpy polars\n"
    assert library.call(command).stdout == "\n"


def test_the_job_may_come_from_a_file_or_standard_input(library):
    *command, job = library.command("write_text", [_TEXT])
    (library.root / "job.json").write_text(job)
    assert "computed" in library.call([*command, "job.json"]).stderr
    asked = {"cwd": library.root, "env": library.environment(), "input": job}
    assert "hit" in subprocess.run([*command, "-"], **asked, capture_output=True, text=True).stderr
    missing = library.call([*command, "none.json"])
    assert missing.returncode == 1
    assert "JOB: none.json: cannot be read" in missing.stderr


def test_with_a_log_the_reason_of_a_failure_is_only_there(library):
    log = library.root / "logs" / "job.log"
    done = library.call([*library.command("write_text", [_TEXT]), "--log", str(log)])
    assert log.read_text() == done.stderr + "[write_text] done\n"
    for entry, reason in (
        ({"spec": {"text": "x", "a": {"module": "voices.none"}}, "output": "results/x"}, "no such module"),
        ({"spec": {"text": 3}, "output": "results/x"}, "AttributeError: 'int' object has no attribute 'strip'"),
    ):
        done = library.call([*library.command("write_text", [_TEXT, entry]), "--log", str(log)])
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == f"[write_text] failed; see {log}"
        assert reason not in done.stderr
        assert "Traceback" not in done.stderr
        lines = log.read_text().splitlines()
        assert lines[0] in done.stderr  # the line of the first entry
        assert lines[-1].startswith("[write_text] error: ")
        assert reason in lines[-1]


def test_an_entry_can_read_the_output_of_an_earlier_one_and_raw_files(library):
    (library.root / "raw.txt").write_text("Raw")
    library.run("write_text", [_TEXT])
    spec = {"voice": {"module": "voices.soft"}}
    first = {"spec": spec, "inputs": {"b": "results/study/text/MANIFEST.json"}, "output": "results/study/one"}
    second = {"spec": spec, "inputs": {"b": "results/study/one"}, "output": "results/study/two"}
    done = library.run("join_texts", [first, second], a="raw.txt")
    assert done.returncode == 0, done.stderr
    assert (library.root / "results/study/one/text.txt").read_text() == "raw hello"
    assert (library.root / "results/study/two/text.txt").read_text() == "raw raw hello"


EDITS = [
    ("words.py", "# no more than that", "# nothing more", ["hit", "hit"]),
    ("words.py", "Return the text, trimmed.", "Trim.", ["hit", "hit"]),
    ("words.py", "text.strip()", "(\n        text.strip()\n    )", ["hit", "hit"]),
    ("voices/soft.py", "lower", "title", ["hit", "hit"]),
    ("progress.py", "flush=True", "flush=False", ["hit", "hit"]),
    ("voices/loud.py", "upper", "title", ["hit", "computed"]),
    ("stages/join_texts.py", '" ".join', '"-".join', ["hit", "computed"]),
    # Different output reaches the next stage; equal output does not.
    ("words.py", "text.strip()", "text.strip() + '!'", ["computed", "computed"]),
    ("words.py", "text.strip()", "text.strip().strip()", ["computed", "hit"]),
]


def test_an_edit_recomputes_exactly_what_depends_on_it(library):
    assert library.both() == ["computed", "computed"]
    for name, old, new, outcomes in EDITS:
        library.edit(name, old, new)
        assert library.both() == outcomes, (name, new)
        library.edit(name, new, old)
    assert library.both() == ["hit", "hit"]


def test_a_config_entry_and_a_plugin_by_name_are_part_of_the_key(library):
    assert library.both() == ["computed", "computed"]
    assert library.both(text="Bye") == ["computed", "computed"]
    assert library.both(text=" Hello ") == ["computed", "hit"]  # trimmed: the same bytes
    assert library.both(voice="soft") == ["hit", "computed"]
    assert library.both() == ["hit", "hit"]


def test_a_package_version_is_part_of_the_key(library):
    library.write("words.py", "import pretend\n\n\ndef decorate(text):\n    return text\n")
    (library.root / "lib" / "pretend.py").touch()
    info = library.root / "lib" / "pretend-1.0+cpu.dist-info"
    info.mkdir()
    outcomes = []
    for version in ("1.0+cpu", "1.0+cu130", "1.1"):
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pretend\nVersion: {version}\n")
        outcomes.append(library.both()[0])
    assert outcomes == ["computed", "hit", "computed"]


def test_two_checkouts_share_a_store(tmp_path):
    one, two = LibraryCopy(tmp_path / "one"), LibraryCopy(tmp_path / "two")
    store = str(tmp_path / "store")
    assert "computed" in one.run("write_text", [_TEXT], store=store).stderr
    assert "hit" in two.run("write_text", [_TEXT], store=store).stderr
    assert "computed" in two.run("write_text", [_TEXT], store=str(tmp_path / "other")).stderr


def test_a_damaged_input_is_refused_and_then_recomputed(library):
    library.both()
    path = library.root / "results/study/text/text.txt"
    path.chmod(0o644)
    path.write_text("Jello")  # the same size: only the contents differ
    library.edit("voices/loud.py", "upper", "title")
    entry = {
        "spec": {"voice": {"module": "voices.loud"}},
        "inputs": {"first": "results/study/text"},
        "output": "results/study/joined",
    }
    done = library.run("join_texts", [entry])
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "input first: results/study/text/text.txt: sha256" in done.stderr
    assert "Run the same command again: write_text will recompute it." in done.stderr
    assert not (path.parent / "MANIFEST.json").exists()  # so that Snakemake requests it
    assert library.both() == ["computed", "computed"]
    assert path.read_text() == "Hello"


def test_a_missing_input_is_reported(library):
    entry = {"spec": {"voice": {"module": "voices.loud"}}, "output": "results/study/joined"}
    done = library.run("join_texts", [entry], raw="nowhere.txt", made="results/study/gone/MANIFEST.json")
    assert done.returncode == 1
    assert "input raw: nowhere.txt: no such file or folder" in done.stderr
    done = library.run("join_texts", [entry], made="results/study/gone/MANIFEST.json")
    assert "results/study/gone/MANIFEST.json: cannot be read" in done.stderr


def test_an_unexpected_error_keeps_its_traceback_and_leaves_nothing(library):
    library.edit("words.py", "text.strip()", "text.no_such_method()")
    done = library.run("write_text", [_TEXT])
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert "no_such_method" in done.stderr
    assert not (library.root / "results/study/text/MANIFEST.json").exists()
    assert list((library.root / "results/store/tmp").iterdir()) == []


@pytest.mark.parametrize("error", ["OSError(5, 'Input/output error', 'shard')", "MemoryError('array too large')"])
def test_a_failure_of_the_machine_is_not_called_a_bug(library, error):
    library.edit("words.py", "return text.strip()", f"raise {error}")
    done = library.run("write_text", [_TEXT])
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "The machine or its file system failed, or a resource limit was reached. " in last
    assert "Finished entries are safe." in last
    assert "bug" not in last


def test_entries_finished_before_a_failure_are_kept(library):
    good, bad = _TEXT, {"spec": {"text": 3}, "output": "results/study/bad"}
    assert library.run("write_text", [good, bad]).returncode != 0
    assert "hit" in library.run("write_text", [good]).stderr


_SLOW = """
import time
from pathlib import Path


def decorate(text):
    Path("started").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    return text
"""


def _started(library, stage="write_text", entry=_TEXT):
    process = subprocess.Popen(
        library.command(stage, [entry]), cwd=library.root, env=library.environment(), stderr=subprocess.PIPE, text=True
    )
    while not (library.root / "started").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    return process


def _ended(library, process, code=0):
    """Let a started process end; return what it said."""
    (library.root / "go").touch()
    said = process.communicate(timeout=60)[1]
    assert process.returncode == code, said
    return said


def _edited_before_it_is_imported(library, edit, restore=lambda late: None):
    """Run a job that imports `dualread.late` after `edit` of its file; return its text, and what the next run says."""
    late = library.write("late.py", "VALUE = '1'\n")
    library.write("words.py", _SLOW.replace("return text", "from dualread import late\n    return text + late.VALUE"))
    process = _started(library)
    edit(late)
    _ended(library, process)
    restore(late)
    made = (library.root / "results/study/text/text.txt").read_text()
    return made, library.run("write_text", [_TEXT]).stderr.split()[2]


@pytest.mark.parametrize("text", ["VALUE = '2'\n", "VALUE = (\n", None], ids=["another value", "half of it", "nothing"])
def test_an_edit_before_the_import_has_no_part_in_the_result(library, text):
    def edit(late):
        late.unlink() if text is None else late.write_text(text)

    made = _edited_before_it_is_imported(library, edit, lambda late: late.write_text("VALUE = '1'\n"))
    assert made == ("Hello1", "hit")


def test_another_module_in_place_of_one_that_was_digested_is_not_imported(library):
    folder = library.package / "late"

    def edit(late):
        folder.mkdir()
        (folder / "__init__.py").write_text("VALUE = '2'\n")

    made = _edited_before_it_is_imported(library, edit)
    assert made == ("Hello1", "computed")  # Python imports a folder before a file


def test_a_module_swept_by_a_script_has_a_result_of_its_own_for_each_value(library):
    """The file keeps its size and its time, as with `cp -p` and `rsync -a`, or changes several times in one second."""
    for value in range(1, 4):
        words = library.write("words.py", f"def decorate(text):\n    return '{value}'\n")
        os.utime(words, (1e9, 1e9))
        assert library.run("write_text", [_TEXT]).stderr.split()[2] == "computed"
        assert (library.root / "results/study/text/text.txt").read_text() == str(value)


def test_the_package_itself_is_not_taken_from_byte_code_that_trusts_times(library):
    package = library.package / "__init__.py"
    rest = package.read_text()
    library.write("words.py", "import dualread\n\n\ndef decorate(text):\n    return dualread.VALUE\n")
    for value in (1, 2):
        package.write_text(f"VALUE = '{value}'\n{rest}")
        os.utime(package, (1e9, 1e9))
        py_compile.compile(str(package), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)  # Python's own
        package.write_text(f"VALUE = '{value + 5}'\n{rest}")
        os.utime(package, (1e9, 1e9))
        assert library.run("write_text", [_TEXT]).stderr.split()[2] == "computed"
        assert (library.root / "results/study/text/text.txt").read_text() == str(value + 5)


def test_a_process_that_a_job_starts_runs_the_code_of_the_job(library):
    library.write("late.py", "VALUE = '1'\n\nif __name__ == '__main__':\n    print(VALUE)\n")
    start = "return subprocess.check_output([sys.executable, '-m', 'dualread.late'], text=True)"
    slow = f"import subprocess, sys\nfrom dualread import late\n{_SLOW}"
    library.write("words.py", slow.replace("return text", start))
    process = _started(library)
    library.edit("late.py", "'1'", "'2'")
    _ended(library, process)
    assert (library.root / "results/study/text/text.txt").read_text() == "1\n"


def test_a_data_file_edited_before_it_is_read_has_no_part_in_the_result(library):
    data = library.write("late.txt", "1")
    slow = f"from dualread import source_snapshot\nDATA_FILES = ('late.txt',)\n{_SLOW}"
    read = "return text + source_snapshot.read(Path(__file__).with_name('late.txt')).decode()"
    library.write("words.py", slow.replace("return text", read))
    process = _started(library)
    data.write_text("2")
    _ended(library, process)
    assert (library.root / "results/study/text/text.txt").read_text() == "Hello1"
    data.write_text("1")
    assert library.run("write_text", [_TEXT]).stderr.split()[2] == "hit"


def _planned(library):
    """Return the arguments of a job that is planned now."""
    program = "from dualread.store.code import job_digests; print(*job_digests('write_text', [{'text': 'Hello'}]))"
    return ["--planned", *library.call([sys.executable, "-c", program]).stdout.split()]


def test_a_job_that_finds_other_code_than_was_planned_does_not_run(library):
    command = [*library.command("write_text", [_TEXT]), *_planned(library)]
    library.edit("words.py", "text.strip()", "text.strip() + '!'")
    done = library.call(command)
    assert done.returncode == 1
    assert "the code or the settings of write_text changed after this run was planned" in done.stderr
    assert not (library.root / "results/study").exists()
    library.edit("words.py", "text.strip() + '!'", "text.strip()  # !")
    assert library.call(command).returncode == 0


def _install(library, version, value):
    """Install the distribution `odd`."""
    for folder in (library.root / "lib").glob("odd*"):
        shutil.rmtree(folder)
    (library.root / "lib/odd").mkdir()
    (library.root / "lib/odd/__init__.py").write_text(f"VALUE = '{value}'\n")
    (library.root / f"lib/odd-{version}.dist-info").mkdir()
    (library.root / f"lib/odd-{version}.dist-info/METADATA").write_text(f"Name: odd\nVersion: {version}\n")


def test_a_package_upgraded_after_the_planning_stops_a_job(library):
    _install(library, "1.0", 1)
    library.write("words.py", "import odd\n\n\ndef decorate(text):\n    return odd.VALUE\n")
    command = [*library.command("write_text", [_TEXT]), *_planned(library)]
    _install(library, "2.0", 2)
    done = library.call(command)
    assert (done.returncode, "the packages of write_text changed after" in done.stderr) == (1, True), done.stderr
    _install(library, "1.0", 1)
    assert library.call(command).returncode == 0


def test_a_package_upgraded_while_a_job_runs_is_not_stored_under_the_key_of_another(library):
    _install(library, "1.0", 1)
    library.write("words.py", _SLOW.replace("return text", "import odd\n    return odd.VALUE"))
    process = _started(library)
    _install(library, "2.0", 2)
    said = _ended(library, process, code=1)
    assert "odd (1.0, now 2.0): replaced while write_text ran, so its result cannot be stored under any key" in said


def test_editing_code_after_it_was_imported_does_no_harm(library):
    library.write("words.py", _SLOW)
    process = _started(library)
    library.edit("words.py", "return text", "return text + '!'")
    _ended(library, process)
    assert "computed" in library.run("write_text", [_TEXT]).stderr  # the edited code has another key
    assert (library.root / "results/study/text/text.txt").read_text() == "Hello!"


def test_a_raw_input_that_changes_while_it_is_read_is_refused(library):
    (library.root / "raw.txt").write_text("Raw")
    library.write("voices/loud.py", _SLOW.replace("decorate", "score"))
    entry = {"spec": {"voice": {"module": "voices.loud"}}, "inputs": {"raw": "raw.txt"}, "output": "results/x"}
    process = _started(library, "join_texts", entry)
    (library.root / "raw.txt").write_text("War!")
    said = _ended(library, process, code=1)
    assert "input raw: raw.txt changed while it was read" in said


def test_an_artifact_that_is_made_again_while_it_is_read_is_refused(library):
    """A job may outlive its run, and the next run may make its input again, after an edit."""
    assert library.run("write_text", [_TEXT]).returncode == 0
    library.write("voices/loud.py", _SLOW.replace("decorate", "score"))
    entry = {"spec": {"voice": {"module": "voices.loud"}}, "inputs": {"a": _TEXT["output"]}, "output": "results/x"}
    process = _started(library, "join_texts", entry)
    assert library.run("write_text", [{**_TEXT, "spec": {"text": "Another"}}]).returncode == 0
    said = _ended(library, process, code=1)
    assert f"input a: {_TEXT['output']} changed while it was read" in said


def test_the_record_stays_in_the_store(library):
    library.run("write_text", [_TEXT])
    (record,) = (library.root / "results/store").glob("??/*/RECORD.json")
    content = json.loads(record.read_text())
    assert {"seconds", "peak_memory_mb", "host", "cpu", "written", "summary", "output", "modules"} <= set(content)
    assert "dualread.words" in content["modules"]
    assert sorted(os.listdir(library.root / "results/study/text")) == ["MANIFEST.json", "text.txt"]


def test_one_thread_by_default(library):
    library.edit("words.py", "text.strip()", "__import__('os').environ['OMP_NUM_THREADS']")
    environment = {k: v for k, v in library.environment().items() if k != "OMP_NUM_THREADS"}
    subprocess.run(library.command("write_text", [_TEXT]), cwd=library.root, env=environment, check=True)
    assert (library.root / "results/study/text/text.txt").read_text() == "1"
