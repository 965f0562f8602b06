"""The specs of records, and of the comparison with the paper."""

from collections.abc import Mapping
from dataclasses import dataclass

from dualread.specs.metrics import OodMeans


@dataclass(frozen=True, kw_only=True)
class ExportRecordsSpec:
    """The two records that the reported numbers rest on.

    Attributes:
        domains: The data sets of the study.
        ccg_domains: The data sets with donor pairs.
    """

    domains: tuple[str, ...]
    ccg_domains: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CompareWithPaperSpec(OodMeans):
    """The comparison of a study's tables with the paper's.

    Attributes:
        actors: The actor of each method.
    """

    study: str
    backbones: tuple[str, ...]
    actors: Mapping[str, str]
