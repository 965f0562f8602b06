import os

import pytest

from dualread.study.display import failures


def test_a_reason_is_what_a_log_says_from_its_error_on(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.log").write_text("[grade] working\n[grade] error: q1: no answer.\n")
    (logs / "b.log").write_text("[grade] working\n[grade] done\n")
    (logs / "c.log").write_text("[grade] working\n[grade] interrupted; finished entries are in the store\n")
    (logs / "d.log").write_text("[grade] working\n")
    (logs / "old.log").write_text("[grade] error: of an earlier run\n")
    os.utime(logs / "old.log", (1, 1))
    said = list(failures(logs, since=2))
    assert said[0] == f"[grade] error: q1: no answer.\n  (log: {logs / 'a.log'})"
    assert said[1].startswith(f"{logs / 'd.log'}: this job was killed")
    assert len(said) == 2


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("ended by SIGKILL", "this job was killed, perhaps for lack of memory. Run"),
        ("ended by SIGTERM", "this job was ended by SIGTERM. Run"),
        ("ended with exit code 3", "this job ended with exit code 3 and without a message: "),
    ],
)
def test_only_what_was_killed_perhaps_lacked_memory(tmp_path, end, said):
    (tmp_path / "a.log").write_text(f"[grade] working\n[grade] {end}\n")
    (found,) = failures(tmp_path, since=0)
    assert found.startswith(f"{tmp_path / 'a.log'}: {said}")
    (tmp_path / "a.log").write_text(f"[grade] error: q1: no answer.\n[grade] {end}\n")
    assert next(failures(tmp_path, since=0)).startswith("[grade] error: q1: no answer.")
