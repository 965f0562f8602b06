"""Reads an HTML table as a grid: each text in its first cell; the other cells of a span are absent."""

import re
from html.parser import HTMLParser


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.sections, self._cell, self._caption = [], None, False
        self.caption = ""

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag in ("thead", "tbody"):
            self.sections.append((tag, []))
        elif tag == "tr":
            self.sections[-1][1].append([])
        elif tag in ("th", "td"):
            spans = int(attributes.get("colspan", 1)), int(attributes.get("rowspan", 1))
            self._cell = {"tag": tag, "scope": attributes.get("scope"), "spans": spans, "text": ""}
            self.sections[-1][1][-1].append(self._cell)
        elif tag == "br" and self._cell is not None:
            self._cell["text"] += " "
        elif tag == "caption":
            self._caption = True

    def handle_endtag(self, tag):
        if tag in ("th", "td"):
            self._cell = None
        elif tag == "caption":
            self._caption = False

    def handle_data(self, data):
        if self._cell is not None:
            self._cell["text"] += data
        elif self._caption:
            self.caption += data


def read(html):
    """The rows of the head and of the body, each a dict of its cells by their first column; and the caption."""
    reader = _Reader()
    reader.feed(html)
    rows = {"thead": [], "tbody": []}
    for section, lines in reader.sections:
        reach = {}  # column -> rows of this section that a cell above still covers
        for line in lines:
            row, column = {}, 0
            for cell in line:
                while reach.get(column, 0):
                    reach[column] -= 1
                    column += 1
                row[column] = cell
                for _ in range(cell["spans"][0]):
                    reach[column] = cell["spans"][1] - 1
                    column += 1
            for rest in [k for k in reach if k >= column and reach[k]]:
                reach[rest] -= 1
            rows[section].append(row)
        assert not any(reach.values()), "a cell reaches below its section"
    return rows["thead"], rows["tbody"], reader.caption


def numbers(text):
    """The printed numbers of a cell as the CSV writes them: .952±.004†, -.013, ---."""
    plain = text.replace("−", "-").replace("—", "---")
    return re.findall(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:±[\d.]+)?†?|---", plain)
