"""Completions parsed by the contract of a name."""

from dualread import plugins
from dualread.grading.parse import Parsed


def parse(text: str, contract: str = "single") -> Parsed:
    return plugins.load("contracts", contract).parse(text)
