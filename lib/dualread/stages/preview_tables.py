"""Stage preview_tables: all tables as one PDF on as few pages as possible, for a quick look.

inputs:  the build_table artifact of each table, under its name
output:  preview.txt, which says what was compiled, or why nothing was, and which tables are higher than a page;
         preview.pdf where LaTeX is installed
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from dualread.errors import ArtifactError, ConfigError
from dualread.schema.tables import PreviewTablesSpec

_PACKAGES = "texlive-latex-base texlive-latex-recommended texlive-latex-extra"
_NO_LATEX = f"""preview.pdf was left out: LaTeX is not installed (no pdflatex on the PATH).
The tables themselves are complete. LaTeX is needed only to show them.
On Debian or Ubuntu: apt-get install {_PACKAGES}
Then run the same command again.
"""

# Every run gives the same bytes: there is no date, no random id and no banner of the TeX installation.
# Package ae takes the letters of T1 from the vector fonts of Computer Modern, which every LaTeX has. Without it,
# they are bitmaps unless cm-super or lmodern is installed. aecompl adds the few letters that ae lacks.
# Floats would leave half of a page empty. Every table is therefore a box with the width of its float on a page with two
# columns, and boxes fill lines and pages as words do.
_PREAMBLE = r"""\documentclass[10pt]{article}
\pdfinfoomitdate=1
\pdfsuppressptexinfo=-1
\pdftrailerid{}
\usepackage{ae,aecompl}
\usepackage[utf8]{inputenc}
\usepackage[a4paper,margin=18mm,top=14mm]{geometry}
\usepackage{booktabs}
\usepackage{multirow}
\makeatletter
\newsavebox{\tablebox}
\newenvironment{boxed}[1]
  {\begin{lrbox}{\tablebox}\begin{minipage}[t]{#1}\def\@captype{table}\let\normalsize\small}
  {\end{minipage}\end{lrbox}%
   \dimen@=\dimexpr\ht\tablebox+\dp\tablebox-\textheight\relax
   \ifdim\dimen@>0pt \typeout{TOO HIGH by \the\dimen@}\fi
   \usebox{\tablebox}\hspace{.03\textwidth}\ignorespacesafterend}
\renewenvironment{table}[1][]{\begin{boxed}{.485\textwidth}}{\end{boxed}\ignorespacesafterend}
\renewenvironment{table*}[1][]{\begin{boxed}{\textwidth}}{\end{boxed}\ignorespacesafterend}
\makeatother
\raggedright
\raggedbottom
\setlength{\parindent}{0pt}
\setlength{\abovecaptionskip}{0pt}
\setlength{\lineskiplimit}{18pt}
\setlength{\lineskip}{18pt}
\begin{document}
"""


def compute(spec: PreviewTablesSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Compile all tables into one PDF, or say that there is no LaTeX, and return one line about it."""
    if spec.latex is None:
        (out / "preview.txt").write_text(_NO_LATEX, encoding="utf-8")
        return "wrote preview.txt: LaTeX is not installed, so there is no preview.pdf"
    program = shutil.which("pdflatex")
    if program is None:
        raise ConfigError(f"preview_tables: spec says {spec.latex!r}, but pdflatex is not on the PATH. Install it.")
    folders = {name: inputs[name] for name in spec.tables}
    pages = (rf"\typeout{{TABLE {name}}}\input{{{name}.tex}}%" for name in folders)
    source = "\n".join([_PREAMBLE, *pages, r"\end{document}", ""])
    # In the store, where `store gc` removes what a killed process has left.
    with TemporaryDirectory(prefix="scratch-", dir=out) as folder:
        work = Path(folder)
        (work / "preview.tex").write_text(source, encoding="utf-8")
        for name, path in folders.items():
            shutil.copyfile(path / f"{name}.tex", work / f"{name}.tex")
        too_large = list(_too_large(_compile(program, work)))
        shutil.copyfile(work / "preview.pdf", out / "preview.pdf")
    lines = [f"preview.pdf shows {', '.join(folders)}; made by {spec.latex}.", *too_large]
    (out / "preview.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return f"read {len(folders)} tables, wrote preview.pdf" + "".join(f"; {line}" for line in too_large)


def _too_large(log: str) -> Iterator[str]:
    """Yield a sentence for each table that is higher than a page."""
    for part in log.split("TABLE ")[1:]:
        if excesses := re.findall(r"TOO HIGH by ([\d.]+)pt", part):
            name = part.split(maxsplit=1)[0]
            height = f"{max(map(float, excesses)):.0f} pt"
            yield f"{name} is {height} too high for its page: let it show less (config.yaml: tables.{name})"


def _compile(program: str, work: Path) -> str:
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "preview.tex"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"}
    run = subprocess.run(
        command, cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300
    )
    log = run.stdout.decode("utf-8", errors="replace")
    if run.returncode != 0:
        lines = log.splitlines()
        start = next((k for k, line in enumerate(lines) if line.startswith("!")), max(0, len(lines) - 5))
        complaint = " | ".join(line.strip() for line in lines[start : start + 5] if line.strip())
        raise ArtifactError(
            f"preview_tables: pdflatex failed: {complaint}. If a package is missing: apt-get install {_PACKAGES}."
        )
    return log
