"""A cluster, and checkouts whose jobs run on it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.with_slurm.cluster import Cluster, NoCluster, cluster, end_with_the_tests
from tests.workflow.checkout import Checkout

STUDY = "tests/with_slurm/study.yaml"
SHARED = ("store.yaml",)  # laid over a study, it names the store that checkouts share


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for the duration of the tests, which stop if none can be started."""
    try:
        with cluster(tmp_path_factory.mktemp("slurm")) as running:
            yield running
    except NoCluster as error:
        pytest.exit(str(error), returncode=1)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that checkouts share."""
    return tmp_path_factory.mktemp("shared") / "store"


def _begin() -> None:
    # What a shell runs in its background ignores SIGINT, and what nohup runs SIGHUP; so does all that they start.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    end_with_the_tests()


class Head:
    """Snakemake with the profile, in the background; what it prints goes to a file."""

    def __init__(self, checkout: Checkout, arguments: list[str]) -> None:
        # Poll every few seconds, because the jobs are short; all other settings are those of the profile.
        profile = ["--workflow-profile", "workflow/profiles/slurm", "--slurm-init-seconds-before-status-checks", "3"]
        environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "lib"), "HF_HUB_OFFLINE": "1"}
        self._out = checkout.folder / f"head-{len(list(checkout.folder.glob('head-*')))}.txt"
        with self._out.open("w") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "snakemake", *profile, *arguments],
                **{"cwd": checkout.folder, "env": environment, "stdout": out, "stderr": subprocess.STDOUT},
                start_new_session=True,  # so that closing its terminal reaches the jobs that run beside it, and no more
                preexec_fn=_begin,
            )

    @property
    def text(self) -> str:
        """Return the output so far."""
        return self._out.read_text()

    def wait(self) -> int:
        """Wait until it ends and return the exit code."""
        return self._process.wait(3600)

    def interrupt(self) -> None:
        """Interrupt it as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill it with SIGKILL if it is running."""
        self._process.kill()
        self._process.wait()

    def hang_up(self) -> None:
        """Close its terminal, if it is running."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGHUP)
        self._process.wait()

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None


@pytest.fixture(scope="session")
def submit(slurm: Cluster, store: Path) -> Iterator[Callable[..., Head]]:
    """A function that starts Snakemake in a checkout with targets and options; `files` are laid over the study."""
    heads: list[Head] = []

    def start(checkout: Checkout, *arguments: str, study: str = STUDY, files: tuple[str, ...] = SHARED) -> Head:
        (checkout.folder / "store.yaml").write_text(f"store: {store}\n")
        heads.append(Head(checkout, [*arguments, "--configfile", study, *files]))
        return heads[-1]

    yield start
    for head in heads:
        head.kill()
