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
# What a job writes that says who has forked it: its parent.
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
        # PS1 is dropped by bash, through which jobs are started.
        self.variables = {**library.environment(), "OMP_NUM_THREADS": "1"}
        self.variables.pop("PS1", None)
        with (self.root / "head.log").open("w") as log:
            self.head = subprocess.Popen(
                [sys.executable, "-c", _HEAD],
                cwd=self.root,
                env={**self.variables, **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                process_group=0,
            )
        address, pid = self.head.stdout.readline().split()
        self.variables[ADDRESS], self.pid = address, int(pid)

    def _job(self, text: str) -> dict:
        return {"store": "results/store", "entries": [{"spec": {"text": text}, "output": f"results/study/{text}"}]}

    def start(self, text: str = "Hello", *options: str, group: int = 0, **variables: str) -> subprocess.Popen[str]:
        """Start a job; its log is <text>.log, and its process group is `group`, or its own."""
        command = [sys.executable, "-m", "dualread.store.run", "write_text", json.dumps(self._job(text))]
        return subprocess.Popen(
            [*command, "--log", f"{text}.log", *options],
            cwd=self.root,
            env={**self.variables, **variables},
            stderr=subprocess.PIPE,
            text=True,
            process_group=group,
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

    def is_forked(self, text: str = "Hello") -> bool:
        """Return whether a job with `_PARENT` has been forked, and not run by what stands for it."""
        parent = int(self.wrote(text))
        assert parent in (self.pid, os.getpid())
        return parent == self.pid

    def go(self) -> None:
        (self.root / "go").touch()


def _wait(condition) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("waited for half a minute")


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def library(tmp_path):
    return LibraryCopy(tmp_path)


@pytest.fixture
def serve(library):
    servers = []

    def start(**variables) -> Served:
        servers.append(Served(library, **variables))
        return servers[-1]

    yield start
    for served in servers:
        served.head.communicate(timeout=60)
        _wait(lambda served=served: _has_ended(served.pid))


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


def test_every_job_imports_the_library_as_it_is_then(library, serve):
    served = serve()
    served.run("one")
    library.edit("words.py", "text.strip()", "text.strip() + '!'")
    assert served.run("two")[0] == 0
    assert [served.wrote("one"), served.wrote("two")] == ["one", "two!"]


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
        assert not (library.root / f"results/study/{text}").exists()
    assert codes[0] == codes[1] != 0
    served.go()
    assert served.run("forked")[0] == 0
    assert list((library.root / "results/store/tmp").iterdir()) == []


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


def test_a_signal_to_a_job_that_has_just_ended_does_not_start_it_again(tmp_path):
    """Its exit code is there to be read, although nobody is left to pass the signal on to."""
    program = """
import os, signal, socket
from dualread.store import forked
ours, theirs = socket.socketpair()
forked._forward_signals(ours, [])
theirs.sendall(b"0")
theirs.close()
os.kill(os.getpid(), signal.SIGTERM)
print(ours.recv(16))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("b'0'\n", "")


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
    code, said = served.run("later")  # the address leads nowhere
    assert (code, served.wrote("later")) == (0, "later"), said
    # The child may have ended after the job had looked for what ended jobs leave: then the next one removes it.
    assert list((library.root / "results/store/tmp").iterdir()) == []


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


def test_a_job_with_another_environment_runs_by_itself_which_is_said_once(library, serve):
    library.write("words.py", _PARENT)
    served = serve()
    for text in ("other", "another"):
        assert served.run(text, OMP_NUM_THREADS="2", ODD="1")[0] == 0
        assert not served.is_forked(text)
    assert served.run("same", TMPDIR=str(library.root))[0] == 0  # differs from job to job
    assert served.is_forked("same")
    reason = "these variables are not what they were when the run began: ODD, OMP_NUM_THREADS"
    assert (library.root / "head.log").read_text() == f"jobs are not forked, and each imports its packages: {reason}\n"


def test_the_jobs_of_an_activated_environment_are_forked(library, serve):
    """`activate` exports PS1, and bash drops it for what is no terminal, such as the command of a job."""
    library.write("words.py", _PARENT)
    served = serve(PS1="(.venv) $ ", PS2="> ")
    assert served.run()[0] == 0
    assert served.is_forked()


def test_ctrl_z_stops_a_job_and_fg_continues_it(library, serve):
    library.write("words.py", _SLOW)
    served = serve()
    job = served.start(group=served.head.pid)
    child = served.child()
    os.killpg(served.head.pid, signal.SIGTSTP)
    _wait(lambda: [_state(pid) for pid in (served.head.pid, job.pid, child)] == ["T"] * 3)
    os.killpg(served.head.pid, signal.SIGCONT)
    _wait(lambda: "T" not in [_state(pid) for pid in (served.head.pid, job.pid, child)])
    served.go()
    said = job.communicate(timeout=60)[1]
    assert (job.returncode, served.wrote()) == (0, "Hello"), said


def test_a_job_that_is_told_to_end_does_not_wait_for_threads_of_packages(library, serve):
    beside = "def decorate(text):\n    threading.Thread(target=time.sleep, args=(60,)).start()"
    library.write("words.py", f"import threading\n{_SLOW.replace('def decorate(text):', beside)}")
    served = serve()
    job = served.start()
    served.child()
    job.terminate()
    job.communicate(timeout=30)
    assert job.returncode == 128 + signal.SIGTERM


def test_ctrl_backslash_leaves_nothing_behind(library, serve):
    library.write("words.py", _SLOW)
    served = serve()
    job = served.start(group=served.head.pid)
    child = served.child()
    os.killpg(served.head.pid, signal.SIGQUIT)
    job.communicate(timeout=60)
    # The server may see the end of Snakemake's process before the signal that the job passes on.
    assert job.returncode in (-signal.SIGQUIT, 128 + signal.SIGTERM)
    _wait(lambda: _has_ended(child) and _has_ended(served.pid))


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM, signal.SIGINT])
def test_a_job_that_was_told_to_end_does_not_start_again_when_the_server_ends_first(library, serve, number):
    library.write("words.py", _SLOW)
    served = serve()
    job = served.start()
    served.child()
    (library.root / "Hello.started").unlink()
    os.kill(served.pid, signal.SIGSTOP)  # so that it passes nothing on
    job.send_signal(number)
    os.kill(served.pid, signal.SIGKILL)
    job.communicate(timeout=60)
    assert job.returncode == -number
    assert not (library.root / "Hello.started").exists()


def test_a_job_does_not_start_again_when_snakemake_has_ended(library, serve):
    library.write("words.py", _SLOW)
    served = serve()
    job = served.start()
    served.child()
    (library.root / "Hello.started").unlink()
    os.kill(served.pid, signal.SIGSTOP)  # so that it does not end the job first
    served.head.kill()
    served.head.wait()
    os.kill(served.pid, signal.SIGKILL)
    said = job.communicate(timeout=60)[1]
    assert (job.returncode, "Snakemake has ended; this job is not run" in said) == (1, True), said
    assert not (library.root / "Hello.started").exists()


_POLARS = """
import time
from pathlib import Path

Path("importing").touch()
for _ in range(6000):
    if Path("imported").exists():
        break
    time.sleep(0.01)
"""


@pytest.fixture
def importing(library, serve):
    """A server that imports a package until there is a file `imported`."""
    (library.root / "lib/polars.py").write_text(_POLARS)
    library.write("words.py", f"import polars\n{_PARENT}")
    served = serve()
    _wait((library.root / "importing").exists)
    return served


def test_no_job_is_accepted_when_snakemake_has_ended(library, importing):
    job = importing.start()
    time.sleep(0.5)  # until it waits for the server
    importing.head.kill()
    importing.head.wait()
    (library.root / "imported").touch()
    said = job.communicate(timeout=60)[1]
    assert (job.returncode, "Snakemake has ended; this job is not run" in said) == (1, True), said


@pytest.mark.parametrize("address", [{}, {ADDRESS: ""}], ids=["forked", "alone"])
def test_a_signal_to_a_job_that_ends_prints_nothing(library, serve, address):
    library.write(
        "words.py",
        _SLOW.replace("    Path(f", "    import atexit\n    atexit.register(end, text)\n    Path(f", 1)
        + "\n\ndef end(text):\n    Path(f'{text}.ends').touch()\n    time.sleep(60)\n",
    )
    served = serve()
    served.go()
    job = served.start(**address)
    _wait((library.root / "Hello.ends").exists)
    job.terminate()
    said = job.communicate(timeout=30)[1]
    assert job.returncode == -signal.SIGTERM
    assert [line for line in said.splitlines() if not line.startswith("[write_text] ")] == []


def test_a_job_of_a_stage_that_was_not_planned_runs_by_itself(library, serve):
    served = serve()
    command = library.command("join_texts", [{"spec": {"voice": {"module": "voices.loud"}}, "output": "results/x"}])
    assert subprocess.run(command, cwd=library.root, env=served.variables, check=False).returncode == 0


def test_two_studies_have_servers_of_their_own(library, serve):
    library.write("words.py", _PARENT)
    one, two = serve(), serve()
    assert one.run("one")[0] == two.run("two")[0] == 0
    assert one.is_forked("one")
    assert two.is_forked("two")
