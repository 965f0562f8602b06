"""In the plan of the embedded study, every input belongs to its job, and another one of the same kind is refused."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from dualread.errors import ArtifactError
from dualread.store.belongs import RunIdentity, check_identities
from dualread.store.job import Entry, parse_job
from tests.workflow.checkout import Checkout, Run

pytestmark = pytest.mark.rest

# Of these, nothing in the job that reads them says which it has to be.
SAY_NOTHING = {("build_manifest", "source"), ("measure_difficulty", "truth")}


@pytest.fixture(scope="module")
def planned(unedited: Checkout, dry: Callable[..., Run]) -> dict[str, tuple[str, Entry, RunIdentity]]:
    """Stage, entry and identity of every artifact of the study, by its folder."""
    done = dry(study="config.yaml")
    assert done.returncode == 0, done.text
    jobs = (unedited.folder / "results/embedded/dry_run/jobs").glob("*/*.json")
    found = [(job.parent.name, entry) for job in jobs for entry in parse_job(job.read_text())[1]]
    return {str(entry.output): (stage, entry, RunIdentity.from_spec(entry.spec)) for stage, entry in found}


def inputs_of(entry: Entry, planned) -> dict[str, str]:
    return {name: str(path.parent) for name, path in entry.inputs.items() if str(path.parent) in planned}


def test_every_input_belongs_to_its_job_and_another_one_of_the_same_stage_is_refused(planned):
    assert len(planned) > 1000
    choose, of_stage, passed, n = random.Random(0), {}, Counter(), Counter()
    for stage, _, identity in planned.values():
        of_stage.setdefault(stage, []).append(identity)
    for stage, entry, identity in planned.values():
        inputs = inputs_of(entry, planned)
        check_identities(identity, {name: planned[path][2] for name, path in inputs.items()}, f"{stage} {entry.output}")
        for name, path in inputs.items():
            made_by, _, right = planned[path]
            for other in choose.sample(of_stage[made_by], min(2, len(of_stage[made_by]))):
                if other == right:
                    continue
                n[stage, name.partition("/")[0]] += 1
                try:
                    check_identities(identity, {name: other}, stage)
                except ArtifactError:
                    continue
                passed[stage, name.partition("/")[0]] += 1
    assert len(n) > 30
    assert {key for key in passed if key[0] != "preview_tables"} <= SAY_NOTHING
