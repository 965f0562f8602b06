"""Everything that runs in the jobs of larger studies, and every name that it reads, is counted by their keys."""

import pytest

from tests.workflow.checkout import Checkout
from tests.workflow.test_families import walk
from tests.workflow.traced import check


def test_the_smoke_study(tmp_path):
    checkout = Checkout.create(tmp_path / "checkout")
    done = checkout.snakemake("all")
    assert done.returncode == 0, done.text
    check(checkout.folder, "smoke", tmp_path)


@pytest.mark.parametrize("family", ["qwen2_5_vl", "paligemma"])
def test_the_study_of_a_family(family, tmp_path, capsys):
    walk(family, tmp_path, capsys)
    check(tmp_path / "checkout", "family", tmp_path)
