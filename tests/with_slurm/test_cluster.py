"""The test cluster: it is not started on a machine that already has one."""

import os

import pytest

from tests.with_slurm.cluster import CONFIGURATION, NoCluster, cluster


def test_a_second_cluster_is_refused_and_the_first_keeps_running(slurm, tmp_path):
    before = (CONFIGURATION / "slurm.conf").read_bytes()
    with pytest.raises(NoCluster, match="this machine has a SLURM already"), cluster(tmp_path):
        pass
    assert (CONFIGURATION / "slurm.conf").read_bytes() == before
    assert not os.listdir(tmp_path)
