import os
import platform
import subprocess
import sys
import textwrap

import pytest

from dualread.machine import free_memory_gb, model_slots, usable_cpus


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("files", "n"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 1),  # one and a half
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),  # version 1
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    ],
)
def test_a_quota_is_rounded_down_leaves_at_least_one_and_without_limits_the_affinity_counts(tmp_path, files, n):
    for name, text in files.items():
        write(tmp_path / name, text)
    assert usable_cpus(tmp_path) == (n or len(os.sched_getaffinity(0)))


def test_the_smaller_of_system_and_cgroup_memory_counts(tmp_path):
    write(tmp_path / "meminfo", "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n")
    assert free_memory_gb(tmp_path, tmp_path / "meminfo") == 8.192  # 8,000,000 * 1024 bytes
    write(tmp_path / "memory.max", "6000000000\n")
    write(tmp_path / "memory.current", "5000000000\n")
    write(tmp_path / "memory.stat", "anon 3000000000\ninactive_file 2000000000\n")
    assert free_memory_gb(tmp_path, tmp_path / "meminfo") == 3.0  # 6 - 5 + 2 of cache


def test_unknown_memory_is_unlimited(tmp_path):
    assert free_memory_gb(tmp_path, tmp_path / "absent") == float("inf")


def test_one_model_job_runs_even_if_it_does_not_fit():
    assert model_slots(1e9) == 1
    assert model_slots(1e-9) == usable_cpus()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no malloc_trim")
def test_freed_memory_goes_back_to_the_system():
    program = """
        from dualread.machine import return_freed_memory

        def resident():
            return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) / 1024

        kept = [bytes(1000 + i % 64) for i in range(200_000)]  # 200 MB in small pieces
        kept = kept[::1000]
        held = resident()
        return_freed_memory()
        print(held - resident())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 100
