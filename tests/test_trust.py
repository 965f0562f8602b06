"""Nothing that was downloaded is ever executed; and the table of docs/trust.md, line by line."""

import ast
import gzip
import json
import os
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from dualread import limits
from dualread.apps.evaluate import log
from dualread.apps.score import ScorerChoice
from dualread.apps.score.bundle import read_bundle
from dualread.apps.score.loading import ChosenReaders
from dualread.artifacts.tensors import write_tensors
from dualread.data import images
from dualread.data.tables import content
from dualread.errors import ArtifactError, DataError, DualReadError
from dualread.models.backbones import _checkpoint_files
from dualread.study import files

LIBRARY = Path(__file__).resolve().parents[1] / "lib" / "dualread"
EXECUTING_FORMATS = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
EXECUTING_ARGUMENTS = {"trust_remote_code": False, "allow_pickle": False, "weights_only": True}


def dangers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in EXECUTING_FORMATS)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in EXECUTING_FORMATS:
            yield str(node.module)
        if isinstance(node, ast.Call):
            yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[str]:
    name = ast.unparse(node.func)
    given = {argument.arg: argument.value for argument in node.keywords}
    if name in ("eval", "exec"):
        yield name
    if name.endswith(("torch.load", "pandas.read_pickle")) and "weights_only" not in given:
        yield f"{name} without weights_only"
    for argument, safe in EXECUTING_ARGUMENTS.items():
        if argument in given and not (isinstance(given[argument], ast.Constant) and given[argument].value is safe):
            yield f"{argument}={ast.unparse(given[argument])}"


def test_no_file_executes_what_was_downloaded():
    found = {str(path.relative_to(LIBRARY)): [*dangers(ast.parse(path.read_bytes()))] for path in LIBRARY.rglob("*.py")}
    assert found
    # It runs the class statement of a plugin, whose module the same study imports a moment later.
    assert {name: of_file for name, of_file in found.items() if of_file} == {"schema/base.py": ["exec"]}


@pytest.mark.parametrize(
    "code",
    [
        *("import pickle", "from joblib import load", "torch.load(f)", "f(trust_remote_code=True)"),
        *("np.load(f, allow_pickle=x)",),
    ],
)
def test_the_search_finds_what_it_looks_for(code):
    assert list(dangers(ast.parse(code)))


DOC = Path(__file__).resolve().parents[1] / "docs" / "trust.md"
TABLE = [line.strip("| ").split(" | ") for line in DOC.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
LINES = {cells[0]: " ".join(cells[1:]) for cells in TABLE if cells[0] not in ("File", "---")}
CLIENT = limits.ClientLimits()
# What each line of the table has to say: numbers of the code. Tests that try what it promises are in tests/security and
# beside what reads the file.
SAYS = {
    "A reader or bundle": [f"{limits.JSON_BYTES // 10**6} MB of JSON", f"{limits.HEADER_BYTES // 10**6} MB of header"],
    "A checkpoint or adapter": [
        f"{limits.CONFIG_LAYERS} layers",
        f"10^{len(str(limits.CONFIG_NUMBER)) - 1} in config.json",
    ],
    "A chat template": [f"{limits.TEMPLATE_SECONDS:.0f} seconds", f"{limits.TEMPLATE_BYTES // 10**9} GB"],
    "A study": [f"{limits.YAML_BYTES // 10**6} MB of YAML", "a million entries"],
    "Results and stores of others": ["Files inside of an entry", "`Settings`"],
    "A table": [
        f"{limits.EXPANSION} times its size",
        f"{limits.ALWAYS_UNPACKED_BYTES // 10**6} MB",
        f"{limits.UNPACKED_BYTES // 10**9} GB",
        f"{limits.LINE_CHARACTERS // 10**6} million characters",
    ],
    "A log": [
        f"{limits.LOG_BYTES // 10**9} GB",
        f"{limits.EXPANSION} times its size",
        f"{limits.ALWAYS_UNPACKED_BYTES // 10**6} MB",
    ],
    "A picture": [
        f"{limits.IMAGE_BYTES // 10**9} GB",
        f"{limits.IMAGE_PIXELS // 10**6} million pixels",
        f"{limits.JPEG_SCANS} scans",
        f"{limits.DICOM_ITEMS:,} items",
        f"{limits.GDCM_BYTES // 10**9} GB of memory",
        f"{limits.GDCM_SECONDS} seconds",
        "no SVG and no EPS",
    ],
    "A reply of a service": [f"{limits.REPLY_BYTES / 1e6:.0f} MB unpacked", "`--timeout`"],
    "A request": [
        f"{CLIENT.megabytes} MB",
        f"{CLIENT.images} images",
        f"{CLIENT.megapixels} megapixels",
        f"{CLIENT.requests} requests",
        f"{limits.REQUEST_VALUES:,} values of JSON",
        f"{limits.REQUEST_CHARACTERS:,} characters of text",
        f"{limits.CHOICES} choices",
        f"{limits.MESSAGES} messages",
        f"{limits.COMPLETION_TOKENS:,} tokens of a completion",
        f"{limits.SECONDS_FOR_HEAD} seconds for its head",
        f"{limits.SECONDS_FOR_BODY} seconds for its body",
    ],
    "An archive of a data set": [f"{limits.EXPANSION} times its size"],
    "Text from any of these": ["`\\u001b`"],
}


def test_the_page_about_trust_says_the_numbers_of_the_code():
    assert limits.YAML_ENTRIES == 10**6
    missing = [
        (line, words)
        for line, all_words in SAYS.items()
        for words in all_words
        if not re.search(rf"(?<![\d,]){re.escape(words)}", LINES[line])
    ]
    assert missing == []
    assert SAYS.keys() == LINES.keys()


def sparse(file, size):
    file.touch()
    os.truncate(file, size)
    return file


def test_a_reader_names_what_is_ours_and_its_header_is_bounded(tmp_path):
    """`tests/security/test_named_modules.py` tries every text of a header, and every field that names a plugin."""
    header = {"format": 2, "module": "some.module", "settings": {}, "weights": [], "notes": {}}
    write_tensors(tmp_path / "reader.safetensors", {}, {**header, "provenance": {}, "parents": {}})
    with pytest.raises(limits.UntrustedNameError, match=r"'some\.module'"):
        ChosenReaders.load(ScorerChoice(reader=tmp_path))
    for size in (limits.HEADER_BYTES + 1, 2**63):
        (tmp_path / "reader.safetensors").write_bytes(size.to_bytes(8, "little") + b"{}")
        with pytest.raises(ArtifactError, match=f"{size:,} bytes"):
            ChosenReaders.load(ScorerChoice(reader=tmp_path))
    for name in ("bundle.json", "thresholds.json"):
        (tmp_path / "bundle.json").write_text('{"format": 1}')
        sparse(tmp_path / name, limits.JSON_BYTES + 1)
        with pytest.raises(ArtifactError):
            read_bundle(tmp_path)
        (tmp_path / name).unlink()


@pytest.mark.parametrize("place", ["bundle.json", "thresholds.json", "readers/psr.safetensors", "reader.safetensors"])
@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "nowhere"])
def test_what_is_no_file_of_a_bundle_is_refused_at_once(tmp_path, place, kind):
    text = {"readers": {"psr": "0" * 64}, "study": "s", "backbone": "b", "actor": "a", "seed": 1, "method": "psr"}
    if place != "reader.safetensors":
        (tmp_path / "bundle.json").write_text(json.dumps({**text, "scoring": {}, "format": 1}))
        (tmp_path / "thresholds.json").write_text("[]")
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("/dev/zero" if kind == "device" else tmp_path / "nowhere")
    with pytest.raises(DualReadError):
        ChosenReaders.load(ScorerChoice(reader=tmp_path))


def test_a_checkpoint_has_bounded_numbers(tmp_path):
    for name, value in (("num_hidden_layers", 257), ("x", 10**12 + 1), ("attn_implementation", "a/b")):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen3_vl", "text_config": {name: value}}))
        with pytest.raises(ArtifactError, match=name):
            _checkpoint_files.read_config(tmp_path)


def test_a_study_a_table_and_a_log_have_bounded_sizes(tmp_path):
    with pytest.raises(ValueError, match="bytes"):
        files.parsed(b"#" * (limits.YAML_BYTES + 1))
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"0\n" * (limits.ALWAYS_UNPACKED_BYTES // 2 + 10)))
    with content.unpacked(tmp_path / "x.csv.gz") as stream, pytest.raises(DataError, match=r"x\.csv\.gz"):
        stream.read()
    large = sparse(tmp_path / "log.jsonl", limits.LOG_BYTES + 1)
    with pytest.raises(DataError, match="bytes"):
        log.read_logged(large, log.LogOptions(log_format="lm-eval"), columns={}, cluster=None)


def test_a_picture_has_bounded_pixels_and_bytes(tmp_path):
    side = int(limits.IMAGE_PIXELS**0.5) + 1
    body = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    (tmp_path / "x.png").write_bytes(head + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT")))
    with pytest.raises(DataError, match="too large"):
        images.decode(tmp_path / "x.png")
    with pytest.raises(DataError, match="bytes"):
        images.decode(sparse(tmp_path / "y.png", limits.IMAGE_BYTES + 1))
