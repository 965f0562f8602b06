"""Everything that runs in the jobs of a study, and every name that it reads, is counted by their keys."""

import pytest

from dualread.store.code import library
from tests.workflow.recomputed import inside, jobs
from tests.workflow.traced import Places, Trace, check


@pytest.mark.long
def test_the_micro_study(micro, tmp_path):
    check(micro.folder, "micro", tmp_path)


@pytest.mark.rest
def test_a_closure_without_a_definition_is_noticed(micro, tmp_path):
    """The check can fail: without the definitions of grading's parser, the stage `grade` runs what is not counted."""
    with inside(micro.folder):
        job = next(job for job in jobs("micro") if job.stage == "grade")
        index = library()
        whole = index.closure(job.roots)
        with Trace() as trace:
            job.compute(tmp_path / "out")
        assert list(Places(index).missing(trace, whole)) == []
        parser = {node for node in whole if node[0] == "dualread.grading.parse" and isinstance(node[1], int)}
        lines = list(Places(index).missing(trace, whole - parser))
    assert any("dualread.grading.parse" in line and line.endswith("ran") for line in lines)
    assert any("dualread.grading.parse" in line and line.endswith("was read") for line in lines)
