"""`make release` edits every place that has the version, once, or nothing at all; what people cite agrees."""

import importlib.util
import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PLACES = ("CITATION.cff", "lib/dualread/__init__.py")

_spec = importlib.util.spec_from_file_location("release", ROOT / ".ci/release.py")
program = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(program)


def git(folder, *words):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Next\n\n- A change.\n\n## 0.3.0 (2026-11)\n\n- Older.\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "All")
    git(tmp_path, "tag", "v0.3.0")
    return tmp_path


def test_a_release_has_one_version_and_a_tag(checkout):
    assert program.release(checkout, "0.10.0", "2027-01-02") == "- A change."
    assert (checkout / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n## 0.10.0 (2027-01-02)\n\n- A change.\n\n## 0.3.0 (2026-11)\n\n- Older.\n"
    )
    assert '__version__ = "0.10.0"\n' in (checkout / "lib/dualread/__init__.py").read_text()
    cited = yaml.safe_load((checkout / "CITATION.cff").read_text())
    assert (cited["version"], str(cited["date-released"])) == ("0.10.0", "2027-01-02")
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "describe", "--exact-match") == "v0.10.0"
    # The next one replaces the date, too.
    changelog = (checkout / "CHANGELOG.md").read_text()
    (checkout / "CHANGELOG.md").write_text(changelog.replace("## 0.10.0", "## Next\n\n- Newer.\n\n## 0.10.0", 1))
    git(checkout, "commit", "--quiet", "--all", "--message", "Newer")
    program.release(checkout, "0.11.0", "2027-02-03")
    assert (checkout / "CITATION.cff").read_text().count("date-released") == 1


@pytest.mark.parametrize(
    ("version", "changelog", "said"),
    [
        ("0.4", None, "expected three numbers"),
        ("0.2.9", None, r"the tag v0\.3\.0 is there"),
        ("0.3.0", None, r"the tag v0\.3\.0 is there"),
        ("0.4.0", "# Changelog\n\n## 0.3.0 (2026-11)\n\n- Older.\n", r"begins with '## 0\.3\.0'"),
        ("0.4.0", "# Changelog\n\n## Next\n\n## 0.3.0\n\n- Older.\n", "begins with '## Next'"),
        ("0.4.0", "# Changelog\n", "begins with no section"),
    ],
)
def test_what_is_not_ready_is_not_changed(checkout, version, changelog, said):
    if changelog:
        (checkout / "CHANGELOG.md").write_text(changelog)
        git(checkout, "commit", "--quiet", "--all", "--message", "Changelog")
    before = git(checkout, "rev-parse", "HEAD")
    with pytest.raises(SystemExit, match=said):
        program.release(checkout, version, "2027-01-02")
    assert (git(checkout, "rev-parse", "HEAD"), git(checkout, "status", "--porcelain")) == (before, "")


def test_uncommitted_files_are_not_released(checkout):
    (checkout / "new.py").write_text("")
    with pytest.raises(SystemExit, match="not committed"):
        program.release(checkout, "0.4.0", "2027-01-02")


def test_what_people_cite_agrees_and_can_be_released():
    assert program.SECTION.search((ROOT / "CHANGELOG.md").read_text())
    cited, zenodo = yaml.safe_load((ROOT / "CITATION.cff").read_text()), json.loads((ROOT / ".zenodo.json").read_text())
    named = [(f"{a['family-names']}, {a['given-names']}", a["affiliation"]) for a in cited["authors"]]
    assert [(one["name"], one["affiliation"]) for one in zenodo["creators"]] == named
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (zenodo["license"], zenodo["title"]) == (cited["license"], cited["title"])
    assert project["license"] == cited["license"]
