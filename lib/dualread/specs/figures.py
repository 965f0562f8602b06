"""The spec of a figure."""

from dataclasses import dataclass

from dualread.specs.parts import Plugin
from dualread.specs.tables import Labeled


@dataclass(frozen=True, kw_only=True)
class FigureLayout:
    """What a figure shows, in this order and under these labels; what the figure does not read is empty."""

    study: str
    backbones: tuple[Labeled, ...]
    actors: tuple[Labeled, ...] = ()
    methods: tuple[Labeled, ...] = ()
    datasets: tuple[Labeled, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DrawFigureSpec:
    """A figure."""

    figure: Plugin
    layout: FigureLayout
