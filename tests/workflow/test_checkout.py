"""What a copy of the repository for tests holds."""

import subprocess

from tests.workflow.checkout import repository_files


def test_what_a_user_made_beside_the_files_of_the_repository_is_not_copied(tmp_path):
    for name in (
        ".gitignore",
        "lib/old.py",
        "lib/new.py",
        "lib/new/deep.py",
        "lib/ignored.log",
        "ours.yaml",
        "mine/a.csv",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("*.log\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "add", ".gitignore", "lib/old.py"], cwd=tmp_path, check=True)
    assert sorted(repository_files(tmp_path)) == [".gitignore", "lib/new.py", "lib/new/deep.py", "lib/old.py"]
