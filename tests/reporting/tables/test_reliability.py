from dualread.reporting.tables import reliability
from dualread.reporting.tables.values import Key
from dualread.stages import build_table
from tests.reporting.tables import cases
from tests.reporting.tables.layouts import TINY, TOKEN, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body, label

METRICS = ("accuracy", "auroc", "ece15", "brier", "aurc", "hce90")
METHODS = [method("rlcr", TOKEN, "rlcr", label="RLCR"), method("dualread", label="DualRead")]


def test_the_bold_cells_are_the_papers():
    """DualRead is best everywhere, but for two cells of Qwen's on VQA-RAD's open questions."""
    paper = cases.paper("reliability")
    cells = cases.read("reliability", paper)
    expected = {key for key in cells if key.metric != "accuracy" and key.method == "dualread"}
    rlcr = {Key("qwen3-vl-2b", "vqa_rad", "open", "rlcr", metric) for metric in ("auroc", "ece15")}
    expected = expected - {key._replace(method="dualread") for key in rlcr} | rlcr
    assert cases.read_bold("reliability", paper) == expected


def test_labels_beside_the_rows():
    paper = cases.paper("reliability")
    backbone, places = [label(line) for line in body(paper)], [label(line, 1) for line in body(paper)]
    qwen, medgemma = (rf"\multirow{{4}}{{*}}{{{name}}}" for name in ("Qwen3VL-2B", "MedGemma1.5-4B"))
    assert backbone == [qwen, "", "", "", medgemma, "", "", ""] * 2
    assert places == [r"\multirow{2}{*}{SLAKE-test}", "", r"\multirow{2}{*}{VQA-RAD}", ""] * 4
    headings = [line for line in paper.tex.splitlines() if line.startswith(r"\multicolumn{9}")]
    assert [line.split(r"\emph{")[1] for line in headings] == [r"Open questions}} \\", r"Closed questions}} \\"]


def test_one_data_set_and_a_subset_without_questions():
    rows = [
        *over_seeds("dualread", "hce90", [0.1, 0.2, 0.3], subset="open"),
        *over_seeds("dualread", "hce90", [None] * 3, subset="closed", reason="no rows"),
    ]
    table = build_table.build(reliability, metrics(*rows), layout(METHODS[1:], TINY))
    assert body(table) == [
        r"Tiny & SLAKE-test & DualRead & --- & --- & --- & --- & --- & $\mathbf{.200}_{\pm.100}$ \\",
        r"Tiny & SLAKE-test & DualRead & --- & --- & --- & --- & --- & --- \\",
    ]
    closed = table.cells.filter(subset="closed", metric="hce90")
    assert closed["reason"].to_list() == ["seeds 17, 29, 43: no rows"]
