"""`make release VERSION=0.4.0`: date the changelog, set the version everywhere, commit, tag, and build both files.

CHANGELOG.md has to begin with a section for this release: `## Next`, or `## 0.4.0` with any date. Nothing is pushed.
"""

import datetime
import re
import subprocess
import sys
from pathlib import Path

SECTION = re.compile(r"^## (Next|\d+\.\d+\.\d+)\b[^\n]*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
# Where the version stands, and what takes its place.
VERSIONED = {
    "lib/dualread/__init__.py": (r'^__version__ = "[^"]*"$', '__version__ = "{version}"'),
    "CITATION.cff": (r"^version: .*(?:\ndate-released: .*)?$", "version: {version}\ndate-released: {date}"),
}
BUILD = "import sys; from setuptools import build_meta as b; b.build_sdist(sys.argv[1]); b.build_wheel(sys.argv[1])"


def release(root: Path, version: str, date: str) -> str:
    """Edit, commit, and tag; return what the changelog says about the release.

    Raises:
        SystemExit: The checkout is not ready for it. Nothing was changed.
    """
    tags = [tuple(map(int, re.findall(r"\d+", tag))) for tag in git(root, "tag", "--list", "v*.*.*").split()]
    changelog = (root / "CHANGELOG.md").read_text()
    section = SECTION.search(changelog)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"VERSION={version}: expected three numbers, such as 0.4.0.")
    if tags and tuple(map(int, version.split("."))) <= max(tags):
        newest = ".".join(map(str, max(tags)))
        sys.exit(f"VERSION={version}: the tag v{newest} is there. Give a higher version.")
    if git(root, "status", "--porcelain"):
        sys.exit("There are files that are not committed (git status). Commit or remove them first.")
    if section is None or section[1] not in ("Next", version) or not section[2].strip():
        found = f"'## {section[1]}'" if section else "no section"
        sys.exit(f"CHANGELOG.md begins with {found}. Describe the changes below '## Next' first.")
    edited = {"CHANGELOG.md": changelog.replace(section[0], f"## {version} ({date})\n{section[2]}", 1)}
    for name, (pattern, replacement) in VERSIONED.items():
        text, n = re.subn(
            pattern, replacement.format(version=version, date=date), (root / name).read_text(), flags=re.M
        )
        if n != 1:
            sys.exit(f"{name}: the version stands in {n} places, expected 1.")
        edited[name] = text
    for name, text in edited.items():
        (root / name).write_text(text)
    git(root, "commit", "--quiet", "--message", f"Version {version}", "--", *edited)
    git(root, "tag", "--annotate", f"v{version}", "--message", f"DualRead {version}")
    return section[2].strip()


def git(root: Path, *words: str) -> str:
    """Return what a command of git prints."""
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Release what is checked out here as the version that the command line names."""
    root, version = Path(__file__).parents[1], sys.argv[1]
    print(release(root, version, datetime.date.today().isoformat()))
    folder = root / "build" / f"dualread-{version}"
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=root, check=True, stdout=subprocess.DEVNULL)
    print(f"\nTagged v{version}; {folder.relative_to(root)} has the sdist and the wheel. To publish them:")
    print(f"  git push origin HEAD v{version}\n  python -m twine upload {folder.relative_to(root)}/*")


if __name__ == "__main__":
    main()
