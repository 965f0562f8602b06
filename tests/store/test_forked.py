"""Jobs that are forked from a server: as jobs in a process of their own, whoever is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dualread.store.forked import ADDRESS
from tests.library_copy import LibraryCopy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the server needs Linux")

# Stands for Snakemake's process: it starts the server for one job, and ends when its standard input is closed.
_HEAD = """
import os, sys
from pathlib import Path
from dualread.store import layers
jobs = [("write_text", Path("job.json"))]
layers.start_forkserver(jobs, Path("results/store/sources.json"), {"OMP_NUM_THREADS": "1"})
print(os.environ[layers.ADDRESS], layers._running[0].pid, flush=True)
sys.stdin.read()
"""
_PARENT = "import os\n\n\ndef decorate(text):\n    return str(os.getppid())\n"
_SLOW = """
import os
import time
from pathlib import Path


def decorate(text):
    Path(f"{text}.pid").write_text(str(os.getpid()))
    Path(f"{text}.pid").rename(f"{text}.started")
    while not Path("go").exists():
        time.sleep(0.01)
    return text
"""


class Served:
    """A copy of the library, and a server that forks its jobs."""

    def __init__(self, library: LibraryCopy, **variables: str) -> None:
        self.library, self.root = library, library.root
        (self.root / "job.json").write_text(json.dumps(self._job("Hello")))
        # Another value than in the environment of the tests would keep jobs from being forked.
        self.variables = {**library.environment(), "OMP_NUM_THREADS": "1"}
        with (self.root / "head.log").open("w") as log:
            self.head = subprocess.Popen(
                [sys.executable, "-c", _HEAD],
                cwd=self.root,
                env={**self.variables, **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        address, pid = self.head.stdout.readline().split()
        self.variables[ADDRESS], self.pid = address, int(pid)

    def _job(self, text: str) -> dict:
        return {"store": "results/store", "entries": [{"spec": {"text": text}, "output": f"results/study/{text}"}]}

    def command(self, text: str) -> list[str]:
        job = json.dumps(self._job(text))
        return [sys.executable, "-m", "dualread.store.forked", "write_text", job, "--log", f"{text}.log"]

    def start(self, text: str = "Hello", *options: str, **variables: str) -> subprocess.Popen[str]:
        """Start a job; its log is <text>.log."""
        return subprocess.Popen(
            [*self.command(text), *options],
            cwd=self.root,
            env={**self.variables, **variables},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, text: str = "Hello", **variables: str) -> tuple[int, str]:
        job = self.start(text, **variables)
        said = job.communicate(timeout=60)[1]
        return job.returncode, said

    def wrote(self, text: str = "Hello") -> str:
        return (self.root / f"results/study/{text}/text.txt").read_text()

    def child(self, text: str = "Hello") -> int:
        """Wait until the job computes; return its process."""
        started = self.root / f"{text}.started"
        _wait(started.exists)
        return int(started.read_text())

    def ended(self) -> str:
        """End Snakemake's process; return what it and the server said."""
        self.head.communicate(timeout=60)
        _wait(lambda: _has_ended(self.pid))
        return (self.root / "head.log").read_text()

    def go(self) -> None:
        (self.root / "go").touch()


def _wait(condition) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("waited for half a minute")


def _state(pid: int) -> str:
    """Return the state of a process, such as R (running), S (sleeping), T (stopped); Z if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def _has_ended(pid: int) -> bool:
    return _state(pid) == "Z"


@pytest.fixture
def library(tmp_path):
    return LibraryCopy(tmp_path)


@pytest.fixture
def serve(library):
    servers = []

    def start(**variables: str) -> Served:
        servers.append(Served(library, **variables))
        return servers[-1]

    yield start
    for served in servers:
        served.ended()


def test_a_forked_job_writes_the_same_files_and_messages(library, serve):
    served = serve()
    forked = served.run("forked")
    alone = served.run("alone", **{ADDRESS: ""})
    assert forked[0] == alone[0] == 0
    for kind in ("RECORD.json", "text.txt"):
        assert len(list((library.root / "results/store").glob(f"??/*/{kind}"))) == 2
    assert [served.wrote("forked"), served.wrote("alone")] == ["forked", "alone"]
    logs = [(library.root / f"{name}.log").read_text().splitlines() for name in ("forked", "alone")]
    assert [lines[-1] for lines in logs] == ["[write_text] done"] * 2
    assert forked[1].splitlines() == logs[0][:-1]
    assert served.run("forked")[1].startswith("[write_text] results/study/forked: hit ")


def test_jobs_are_children_of_the_server(library, serve):
    library.write("words.py", _PARENT)
    served = serve()
    assert served.run()[0] == 0
    assert served.wrote() == str(served.pid)


def test_every_job_imports_the_library_as_it_is_then(library, serve):
    served = serve()
    served.run("one")
    library.edit("words.py", "text.strip()", "text.strip() + '!'")
    assert served.run("two")[0] == 0
    assert [served.wrote("one"), served.wrote("two")] == ["one", "two!"]


def test_a_failure_has_its_exit_code_and_its_log(library, serve):
    library.edit("words.py", "text.strip()", "text.no_such_method()")
    code, said = serve().run()
    assert code == 1
    assert said.splitlines()[-1] == "[write_text] failed; see Hello.log"
    assert "no_such_method" in (library.root / "Hello.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_a_job_ends_it_as_it_ends_a_job_that_is_not_forked(library, serve, number):
    library.write("words.py", _SLOW)
    served = serve()
    codes = []
    for text, variables in (("forked", {}), ("alone", {ADDRESS: ""})):
        job = served.start(text, **variables)
        child = served.child(text)
        job.send_signal(number)
        job.communicate()
        _wait(lambda child=child: _has_ended(child))
        codes.append(job.returncode)
        left = list((library.root / "results/store/tmp").iterdir())
        assert bool(left) == (number == signal.SIGKILL)  # a later job removes it
    assert codes[0] == codes[1] != 0
    served.go()
    assert served.run("forked")[0] == 0


def test_a_signal_to_the_whole_group_reaches_a_job_once(library, serve):
    library.write(
        "words.py",
        _SLOW.replace("import os", "import os, signal").replace(
            "    Path(f", "    signal.signal(signal.SIGTERM, lambda *_: open('signals', 'a').write('x'))\n    Path(f", 1
        ),
    )
    served = serve()
    job = served.start()
    served.child()
    os.killpg(job.pid, signal.SIGTERM)
    _wait((library.root / "signals").exists)
    served.go()
    said = job.communicate()[1]
    assert job.returncode == 0, said
    assert (library.root / "signals").read_text() == "x"


def test_a_job_that_is_killed_ends_what_stands_for_it_in_the_same_way(library, serve):
    library.write("words.py", _SLOW)
    served = serve()
    job = served.start()
    os.kill(served.child(), signal.SIGKILL)
    job.communicate()
    assert job.returncode == -signal.SIGKILL


def test_when_the_server_is_killed_its_jobs_start_again_by_themselves(library, serve):
    library.write("words.py", _SLOW)
    served = serve()
    job = served.start()
    child = served.child()
    (library.root / "Hello.started").unlink()
    os.kill(served.pid, signal.SIGKILL)
    _wait(lambda: _has_ended(child))
    assert served.child() == job.pid  # now it runs the job itself
    served.go()
    said = job.communicate()[1]
    assert job.returncode == 0, said
    assert "the process that had forked this job was killed; the job starts again" in said
    assert served.wrote() == "Hello"
    assert list((library.root / "results/store/tmp").iterdir()) == []
    code, said = served.run("later")  # the address leads nowhere
    assert (code, served.wrote("later")) == (0, "later"), said


def test_when_snakemakes_process_is_killed_the_server_and_its_jobs_end(library, serve):
    library.write("words.py", _SLOW)
    served = serve()
    job = served.start()
    child = served.child()
    served.head.kill()
    job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGTERM
    _wait(lambda: _has_ended(child) and _has_ended(served.pid))
    assert list((library.root / "results/store/tmp").iterdir()) == []


def test_a_job_with_another_environment_runs_by_itself(library, serve):
    library.write("words.py", _PARENT)
    served = serve()
    assert served.run("other", OMP_NUM_THREADS="2")[0] == 0
    assert served.wrote("other") == str(os.getpid())
    assert served.run("same", TMPDIR=str(library.root))[0] == 0  # differs from job to job
    assert served.wrote("same") == str(served.pid)


def test_why_jobs_are_not_forked_is_said_once(library, serve):
    served = serve()
    for text in ("one", "two"):
        assert served.run(text, OMP_NUM_THREADS="2", PYTHONUTF8="1")[0] == 0
    said = served.ended()
    assert said.count("not forked: OMP_NUM_THREADS, PYTHONUTF8 differ from Snakemake's own") == 1


def test_a_job_from_the_shell_of_an_activated_environment_is_forked(library, serve):
    """`activate` exports PS1, which a bash that runs a command leaves out, as the one of a job does."""
    library.write("words.py", _PARENT)
    served = serve(PS1="(.venv) $ ")
    command = ["bash", "-c", 'exec "$@"', "bash", *served.command("shell")]
    subprocess.run(command, cwd=library.root, env={**served.variables, "PS1": "(.venv) $ "}, check=True)
    assert served.wrote("shell") == str(served.pid)


def test_a_job_is_not_run_for_nobody(library, serve):
    library.write("words.py", _SLOW)
    served = serve()
    os.kill(served.pid, signal.SIGSTOP)  # as if it were still importing a layer
    job = served.start()
    time.sleep(0.2)
    served.head.kill()
    served.head.wait()
    os.kill(served.pid, signal.SIGCONT)
    said = job.communicate(timeout=60)[1]
    assert (job.returncode, "nobody waits for this job" in said) == (1, True)
    code, said = served.run("later")
    assert (code, "nobody waits for this job" in said) == (1, True)
    assert not list(library.root.glob("*.started"))


def test_the_keys_of_a_terminal_reach_the_job_and_not_the_server(library, serve):
    """Ctrl-Z and Ctrl-\\ send a signal to all processes of the foreground, Snakemake's and the server among them."""
    library.write("words.py", _SLOW)
    served = serve()
    job = served.start()
    child = served.child()
    for process in (served.pid, job.pid):
        os.kill(process, signal.SIGTSTP)
    _wait(lambda: _state(child) == _state(job.pid) == "T" and _state(served.pid) != "T")
    os.kill(job.pid, signal.SIGCONT)
    _wait(lambda: _state(child) in "RS")
    for process in (served.pid, job.pid):
        os.kill(process, signal.SIGQUIT)
    job.communicate(timeout=60)
    assert job.returncode == -signal.SIGQUIT
    _wait(lambda: _has_ended(child))
    assert not _has_ended(served.pid)


def test_a_job_of_a_stage_that_was_not_planned_runs_by_itself(library, serve):
    served = serve()
    command = library.command("join_texts", [{"spec": {"voice": {"module": "voices.loud"}}, "output": "results/x"}])
    command[2] = "dualread.store.forked"
    assert subprocess.run(command, cwd=library.root, env=served.variables, check=False).returncode == 0


def test_two_studies_have_servers_of_their_own(library, serve):
    library.write("words.py", _PARENT)
    one, two = serve(), serve()
    assert one.run("one")[0] == two.run("two")[0] == 0
    assert [one.wrote("one"), two.wrote("two")] == [str(one.pid), str(two.pid)]
