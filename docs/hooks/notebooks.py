"""Execute the notebooks of docs/notebooks when the site is built, and add each as a page and as an .ipynb file.

A notebook is a plain Python file in the percent format, which Jupyter opens too (with jupytext). The outputs on the
site are those of the build; a cell that fails stops it.
"""

import re
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from mkdocs.structure.files import File
from nbclient import NotebookClient

REPOSITORY = Path(__file__).parents[2]
_SECONDS = 600  # for the cell that may run the smallest study


def on_files(files: Any, config: Any) -> Any:
    """Add the executed notebooks to the files of the site (an event of mkdocs)."""
    for path in sorted((Path(config["docs_dir"]) / "notebooks").glob("*.py")):
        notebook = executed(path.read_text(encoding="utf-8"), REPOSITORY)
        name = f"notebooks/{path.stem}"
        files.append(File.generated(config, f"{name}.ipynb", content=nbformat.writes(notebook)))
        download = f"\n\nThis page as a notebook: [{path.stem}.ipynb]({path.stem}.ipynb)\n"
        files.append(File.generated(config, f"{name}.md", content=markdown(notebook) + download))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to a notebook's file, which is what a reader of the repository has, lead to its page."""
    return re.sub(r"\]\((notebooks/\w+)\.py\)", r"](\1.md)", markdown)


def executed(text: str, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook `text`, executed in `folder`.

    Raises:
        CellExecutionError: A cell failed; the message shows it with its traceback.
    """
    notebook = jupytext.reads(text, fmt="py:percent")
    place = {"metadata": {"path": folder}}
    client = NotebookClient(notebook, timeout=_SECONDS, kernel_name="python3", resources=place)
    client.extra_arguments = ["--log-level=ERROR"]
    return client.execute()


def markdown(notebook: nbformat.NotebookNode) -> str:
    """Return the notebook as a page: texts, code, and what the code printed, returned, or drew; no progress."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            printed = "".join(one.text for one in cell.outputs if one.output_type == "stream" and one.name == "stdout")
            parts.append(f"```python\n{cell.source}\n```")
            parts += [_text(printed)] if printed else []
            parts += [_shown(one.data) for one in cell.outputs if one.output_type != "stream"]
    return "\n\n".join(parts)


def _shown(data: nbformat.NotebookNode) -> str:
    for kind in ("image/png", "image/jpeg"):
        if kind in data:
            return f"![what the code draws](data:{kind};base64,{data[kind].strip()})"
    return _text(data["text/plain"])


def _text(text: str) -> str:
    return f"````text\n{text.rstrip()}\n````"  # four, because what is printed may have three
