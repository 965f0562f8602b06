"""A copy of the light part of the library with two small stages, which tests may edit and run in processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dualread

_LIGHT = (
    *("__init__.py", "__main__.py", "apps", "devices.py", "digests.py", "errors.py", "machine.py"),
    *("plugins.py", "progress.py", "source_snapshot.py", "store"),
)

WRITE = '''"""Writes its spec's text, after what `dualread.words` adds."""
from pathlib import Path

from dualread.words import decorate


def compute(spec, inputs, out):
    (out / "text.txt").write_text(decorate(spec["text"]))
    return "wrote 1 text"
'''
JOIN = '''"""Joins the texts of its inputs, and says which module made the words loud."""
from dualread import plugins


def compute(spec, inputs, out):
    texts = [(path / "text.txt" if path.is_dir() else path).read_text() for _, path in sorted(inputs.items())]
    voice = plugins.load_module(spec["voice"]["module"])
    (out / "text.txt").write_text(voice.score(" ".join(texts)))
    return f"read {len(texts)} texts, wrote 1"
'''
WORDS = '''"""Words."""


def decorate(text):
    """Return the text, trimmed."""
    return text.strip()  # no more than that
'''


class LibraryCopy:
    """A checkout in `root`: root/lib/dualread, and results in root/results."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "lib" / "dualread"
        source = Path(dualread.__file__).parent
        for name in _LIGHT:
            target = self.package / name
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (source / name).is_dir() else shutil.copy
            copy(source / name, target)
        self.write("stages/__init__.py", '"""Stages."""\n')
        self.write("stages/write_text.py", WRITE)
        self.write("stages/join_texts.py", JOIN)
        self.write("words.py", WORDS)
        self.write("voices/__init__.py", '"""Voices."""\n')
        self.write("voices/loud.py", "def score(text):\n    return text.upper()\n")
        self.write("voices/soft.py", "def score(text):\n    return text.lower()\n")
        plugins = self.package / "plugins.py"
        plugins.write_text(plugins.read_text().replace("FAMILIES = {", 'FAMILIES = {"voices": ("voices", "score"),'))

    def write(self, name: str, text: str) -> Path:
        path = self.package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.package / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.root / "lib"), "PYTHONDONTWRITEBYTECODE": ""}

    def command(self, stage: str, entries: list[dict], store: str = "results/store", **inputs: str) -> list[str]:
        job = {"store": store, "inputs": inputs, "entries": entries}
        return [sys.executable, "-m", "dualread.store.run", stage, json.dumps(job)]

    def run(self, stage: str, entries: list[dict], **options: str) -> subprocess.CompletedProcess[str]:
        return self.call(self.command(stage, entries, **options))

    def call(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=self.root, env=self.environment(), capture_output=True, text=True)

    def both(self, text: str = "Hello", voice: str = "loud") -> list[str]:
        """Run write_text and join_texts; return "computed" or "hit" of each."""
        outcomes = []
        for stage, entry in (
            ("write_text", {"spec": {"text": text}, "output": "results/study/text"}),
            (
                "join_texts",
                {
                    "spec": {"voice": {"module": f"voices.{voice}"}},
                    "inputs": {"first": "results/study/text"},
                    "output": "results/study/joined",
                },
            ),
        ):
            done = self.run(stage, [entry])
            assert done.returncode == 0, done.stderr
            outcomes.append(done.stderr.splitlines()[-1].split(": ", 1)[1].split()[0])
        return outcomes
