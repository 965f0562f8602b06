import os

from dualread.study.failures import reasons


def test_a_reason_is_what_a_log_says_from_its_error_on(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.log").write_text("[grade] working\n[grade] error: q1: no answer.\n")
    (logs / "b.log").write_text("[grade] working\n[grade] done\n")
    (logs / "c.log").write_text("[grade] working\n[grade] interrupted; finished entries are in the store\n")
    (logs / "d.log").write_text("[grade] working\n")
    (logs / "old.log").write_text("[grade] error: of an earlier run\n")
    os.utime(logs / "old.log", (1, 1))
    said = list(reasons(logs, since=2))
    assert said[0] == f"[grade] error: q1: no answer.\n  (log: {logs / 'a.log'})"
    assert said[1].startswith(f"{logs / 'd.log'}: this job was killed")
    assert len(said) == 2
