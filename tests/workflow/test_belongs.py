"""In the plan of the embedded study, every input belongs to its job, and another one of the same kind is refused."""

import random
from collections import Counter

import pytest

from dualread.errors import ArtifactError
from dualread.store.belongs import RunIdentity, check
from dualread.store.job import Entry, parse_job
from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.rest

# Of these, nothing in the job that reads them says which it has to be.
SAY_NOTHING = {("build_manifest", "source"), ("measure_difficulty", "truth")}


@pytest.fixture(scope="module")
def planned(tmp_path_factory) -> dict[str, tuple[str, Entry]]:
    """Stage and entry of every artifact of the study, by its folder."""
    checkout = Checkout.create(tmp_path_factory.mktemp("planned"))
    done = checkout.snakemake("-n", "all", study="config.yaml")
    assert done.returncode == 0, done.text
    jobs = (checkout.folder / "results/embedded/dry_run/jobs").glob("*/*.json")
    found = [(job.parent.name, entry) for job in jobs for entry in parse_job(job.read_text())[1]]
    return {str(entry.output): (stage, entry) for stage, entry in found}


def inputs_of(entry: Entry, planned) -> dict[str, str]:
    return {name: str(path.parent) for name, path in entry.inputs.items() if str(path.parent) in planned}


def test_every_input_belongs_to_its_job(planned):
    assert len(planned) > 1000
    for stage, entry in planned.values():
        inputs = {name: RunIdentity.spec(planned[path][1].spec) for name, path in inputs_of(entry, planned).items()}
        check(RunIdentity.spec(entry.spec), inputs, f"{stage} {entry.output}")


def test_another_input_of_the_same_stage_is_refused(planned):
    choose, of_stage, passed, n = random.Random(0), {}, Counter(), Counter()
    for stage, entry in planned.values():
        of_stage.setdefault(stage, []).append(entry)
    for stage, entry in planned.values():
        for name, path in inputs_of(entry, planned).items():
            made_by, right = planned[path]
            others = [
                other for other in of_stage[made_by] if RunIdentity.spec(other.spec) != RunIdentity.spec(right.spec)
            ]
            for other in choose.sample(others, min(3, len(others))):
                n[stage, name.partition("/")[0]] += 1
                try:
                    check(RunIdentity.spec(entry.spec), {name: RunIdentity.spec(other.spec)}, stage)
                except ArtifactError:
                    continue
                passed[stage, name.partition("/")[0]] += 1
    assert len(n) > 30
    assert {key for key in passed if key[0] != "preview_tables"} <= SAY_NOTHING
