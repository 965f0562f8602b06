"""Make the pictures of docs/gallery.md again: run each command that the page shows, and take a picture of what it made.

    python -m benchmarks.gallery                          needs results/embedded (`make tables`), and results/slake_tiny
    python -m benchmarks.gallery --only evaluate demo

It takes a minute, and needs Chromium, jq, and what `make env-dev` installs. A public log is downloaded unless it is in
build/gallery. The page gets the commit at which it was run.
"""

import argparse
import base64
import html
import io
import json
import shlex
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from tests.reporting.devtools import Page, browser

ROOT = Path(__file__).resolve().parents[1]
PAGE, FOLDER = ROOT / "docs" / "gallery.md", ROOT / "docs" / "gallery"
WIDTH, MOST_BYTES = 1200, 150_000
_COLORS = 96
_MADE = "Made at commit "
_READER = "results/embedded/readers/qwen3-vl-tiny/rlvr/17/dualread"
_ACTOR = "results/embedded/actors/qwen3-vl-tiny/rlvr/17"
_LOG = "4_config_qwen_250q_20260301_162510.json"
_LOG_AT = (
    "https://raw.githubusercontent.com/jraymartinez/marc-medical-calibration"
    f"/44e0364c77125571f429b4404075b77413a853fa/results/4_config_comparison/{_LOG}"
)
_SHOWN_AS_TEXT = """<meta charset="utf-8"><style>
body {{ margin: 0; padding: 24px; background: #fff; color: #1a1a1a }}
pre {{ margin: 0; font: 15px/1.5 "DejaVu Sans Mono", monospace; white-space: pre-wrap }} b {{ color: #1c5c99 }}
</style><pre><b>$ {command}</b>
{text}</pre>"""


@dataclass(frozen=True)
class Shot:
    """A picture of the gallery.

    Attributes:
        command: The command that the page shows.
        take: Take the picture, a PNG, in an empty page and an empty folder.
    """

    command: str
    take: Callable[[Page, str, Path], bytes]


def _run(command: str) -> str:
    """Return what a command prints."""
    return subprocess.run(_words(command), cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _words(command: str) -> list[str]:
    words = shlex.split(command.replace("\\\n", " "))
    return [sys.executable, "-m", "dualread", *words[1:]] if words[0] == "dualread" else words


def _picture(page: Page, height: int | None = None) -> bytes:
    """Return a picture of the top of a page, or of all of it."""
    page.call(
        "Emulation.setDeviceMetricsOverride", width=WIDTH, height=height or 100, deviceScaleFactor=1, mobile=False
    )
    tall = height or int(page.value("document.documentElement.scrollHeight"))
    return page.picture(WIDTH, tall)


def _open(page: Page, address: str) -> None:
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    page.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=1000, deviceScaleFactor=1, mobile=False)
    page.open(address)


def _text(page: Page, command: str, text: str, folder: Path) -> bytes:
    """Return a picture of a command and what it printed, as in a terminal."""
    (folder / "text.html").write_text(_SHOWN_AS_TEXT.format(command=html.escape(command), text=html.escape(text)))
    _open(page, (folder / "text.html").as_uri())
    return _picture(page)


def report(height: int) -> Callable[[Page, str, Path], bytes]:
    def take(page: Page, command: str, folder: Path) -> bytes:
        of_the_study = command.splitlines()[-1]  # what is before it makes the study, which is there
        _run(f"{of_the_study} --out {folder / 'report.html'}")
        _open(page, (folder / "report.html").as_uri())
        return _picture(page, height)

    return take


def claims(page: Page, command: str, folder: Path) -> bytes:
    """Take the picture of a report whose claims have confidences, beside its image and its donor."""
    _run(f"{command.splitlines()[-1]} --out {folder / 'browse.html'}")
    _open(page, (folder / "browse.html").as_uri())
    page.wait("document.querySelector('p.report') !== null")
    page.value("[...document.querySelectorAll('p.report')].at(-1).scrollIntoView({block: 'end'}) ?? true")
    return _picture(page, 1060)


def printed(page: Page, command: str, folder: Path) -> bytes:
    text = _run(command.replace("--out mine", f"--out {folder / 'mine'}"))
    return _text(page, command, text.replace(str(folder / "mine"), "mine"), folder)


def evaluated(page: Page, command: str, folder: Path) -> bytes:
    _run(command.replace("--out mine", f"--out {folder / 'mine'}"))
    _open(page, (folder / "mine" / "evaluate.html").as_uri())
    return _picture(page)


def theirs(page: Page, command: str, folder: Path) -> bytes:
    """Judge the log of others: the commands are run as they are shown, but for the download, which is kept."""
    kept = ROOT / "build" / "gallery" / _LOG
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(urllib.request.urlopen(_LOG_AT, timeout=60).read())
    (folder / _LOG).write_bytes(kept.read_bytes())
    _, as_table, judge = command.replace("\\\n", " ").splitlines()
    subprocess.run(as_table, shell=True, cwd=folder, check=True)
    subprocess.run(_words(judge), cwd=folder, check=True, capture_output=True)
    _open(page, (folder / "theirs" / "evaluate.html").as_uri())
    return _picture(page, 900)


def demo(page: Page, command: str, folder: Path) -> bytes:
    with _server(f"{command} --port 0 --no-browser", "http://127.0.0.1:") as address:
        _open(page, address)
        page.value("document.getElementById('example-1').click()")
        page.wait("document.querySelector('#result h2') !== null")
        return _picture(page)


def serve(page: Page, command: str, folder: Path) -> bytes:
    with _server(f"{command} --port 0", "http://127.0.0.1:") as address:
        image = min((ROOT / "results/embedded/manifests/slake/test/images").iterdir())
        asked = [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_png(image)}"}},
            {"type": "text", "text": "Does the picture look abnormal?"},
        ]
        (folder / "question.json").write_text(json.dumps({"messages": [{"role": "user", "content": asked}]}))
        curl = f"curl -s {address}/chat/completions -H 'Content-Type: application/json' -d @question.json"
        reply = json.loads(_run(curl.replace("@question.json", f"@{folder / 'question.json'}")))
    usual = "http://127.0.0.1:8000/v1"
    asked_with = f"{curl.replace(address, usual)} \\\n    | python -m json.tool --indent 2"
    text = f"{usual} is ready, with the model dualread.\n\n$ {asked_with}\n{json.dumps(reply, indent=2)}"
    return _text(page, command, text, folder)


def _png(image: Path) -> str:
    file = io.BytesIO()
    Image.open(image).convert("RGB").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


@contextmanager
def _server(command: str, mark: str) -> Iterator[str]:
    """Start a server, and yield the address that it prints."""
    with subprocess.Popen(
        _words(command), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        try:
            assert run.stdout is not None
            for line in run.stdout:
                if mark in line:
                    yield mark + line.split(mark)[1].split()[0].rstrip(".,")
                    return
            raise RuntimeError(f"{command} has ended before it printed an address.")
        finally:
            run.terminate()


SHOTS = {
    "report": Shot("dualread report results/embedded", report(1000)),
    # Lower down, the report shows images and questions of SLAKE, which are not ours to publish.
    "slake": Shot(
        "snakemake --cores 8 --configfile workflow/studies/slake_tiny.yaml \\\n"
        "    workflow/selections/rlvr.yaml workflow/selections/one_seed.yaml\n"
        "dualread report results/slake_tiny",
        report(1060),
    ),
    "reports": Shot(
        "snakemake --cores 2 --configfile workflow/studies/reports.yaml\n"
        "dualread browse results/reports --dataset reports",
        claims,
    ),
    "printed": Shot(
        "dualread evaluate docs/example/predictions.csv --pairs docs/example/pairs.csv --out mine", printed
    ),
    "evaluate": Shot(
        "dualread evaluate docs/example/predictions.csv --pairs docs/example/pairs.csv --out mine", evaluated
    ),
    "theirs": Shot(
        f"curl -O {_LOG_AT}\n"
        "jq -c '.configurations[] | .config_name as $method | .results[] | "
        "{method: $method, sample_id: .question_idx, correct: .is_correct, confidence}' \\\n"
        f"    {_LOG} > theirs.jsonl\n"
        "dualread evaluate theirs.jsonl --out theirs",
        theirs,
    ),
    "serve": Shot(f"dualread serve {_READER} \\\n    --checkpoint {_ACTOR}", serve),
    "demo": Shot(f"dualread demo {_READER} \\\n    --checkpoint {_ACTOR}", demo),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SHOTS, default=list(SHOTS), help="these pictures alone")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, browser(Path(scratch)) as running:
        for name in options.only:
            with running.page() as page, tempfile.TemporaryDirectory() as folder:
                content = _small(SHOTS[name].take(page, SHOTS[name].command, Path(folder)))
            (FOLDER / f"{name}.png").write_bytes(content)
            print(f"wrote docs/gallery/{name}.png ({len(content) / 1e3:.0f} kB)")
    commit = _run("git rev-parse --short=8 HEAD").strip()
    lines = PAGE.read_text().splitlines()
    PAGE.write_text("\n".join(f"{_MADE}`{commit}`." if line.startswith(_MADE) else line for line in lines) + "\n")


def _small(picture: bytes) -> bytes:
    """Return a picture with few colors, in few bytes."""
    file = io.BytesIO()
    colors = Image.open(io.BytesIO(picture)).convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE)
    colors.save(file, "PNG", optimize=True)
    assert file.tell() <= MOST_BYTES, f"{file.tell()} bytes, more than {MOST_BYTES}: show less of the page."
    return file.getvalue()


if __name__ == "__main__":
    main()
