"""The cluster, and checkouts whose jobs run on it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.with_slurm.cluster import Cluster, NoCluster, cluster
from tests.workflow.checkout import Checkout

STUDY = "tests/with_slurm/study.yaml"


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for as long as the tests take; where there can be none, nothing here can be tested."""
    try:
        with cluster(tmp_path_factory.mktemp("slurm")) as running:
            yield running
    except NoCluster as error:
        pytest.exit(str(error), returncode=1)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that checkouts share."""
    return tmp_path_factory.mktemp("shared") / "store"


class Head:
    """Snakemake with the profile, in the background, in a checkout whose results go to the shared store.

    Args:
        checkout: Where it runs.
        store: Laid over the study, as README says.
        targets: What is asked for.
        options: More options.
        files: Laid over the study, besides the store's.
    """

    def __init__(
        self, checkout: Checkout, store: Path, *targets: str, options: tuple[str, ...] = (), files: tuple[str, ...] = ()
    ) -> None:
        (checkout.folder / "store.yaml").write_text(f"store: {store}\n")
        # Asked for news every few seconds, because the jobs are short; everything else is the profile's.
        profile = ("--workflow-profile", "workflow/profiles/slurm", "--slurm-init-seconds-before-status-checks", "3")
        files = ("--configfile", STUDY, *files, "store.yaml")
        command = [sys.executable, "-m", "snakemake", *profile, *options, *targets, *files]
        environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "lib"), "HF_HUB_OFFLINE": "1"}
        self._out = checkout.folder / f"head-{len(list(checkout.folder.glob('head-*')))}.txt"
        with self._out.open("w") as out:
            self._process = subprocess.Popen(
                command, cwd=checkout.folder, env=environment, stdout=out, stderr=subprocess.STDOUT
            )

    @property
    def text(self) -> str:
        """What it has printed so far."""
        return self._out.read_text()

    def wait(self, seconds: float = 1500) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait(seconds)

    def kill(self) -> None:
        """End it with a signal that it cannot answer."""
        self._process.kill()
        self._process.wait()
