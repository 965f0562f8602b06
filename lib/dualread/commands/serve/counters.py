"""What a server counts, in the text format of Prometheus."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0)
_SHARES = tuple(k / 10 for k in range(1, 11))
_WORDS = {
    "requests_total": "Requests to /v1/chat/completions by the status of the reply.",
    "answers_total": "Answers by what was said about them: kept, not kept, undecided, or without a confidence.",
    "abstentions_total": "Requests for which no answer was made, because PSR was below the limit.",
    "disconnects_total": "Requests whose client went away before the end.",
    "tokens_total": "Tokens that were read (prompt) and made (completion).",
    "requests_open": "Requests that are being answered or wait.",
    "completions_open": "Completions that are being made, wait, or still hold memory.",
    "first_token_seconds": "Time from a request to the first token of its answer.",
    "request_seconds": "Time from a request to its last byte.",
    "confidence": "Confidences of answers.",
}


class Counters:
    """Counts, of one thread."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self._seen: dict[str, _Histogram] = {
            "first_token_seconds": _Histogram(_SECONDS),
            "request_seconds": _Histogram(_SECONDS),
            "confidence": _Histogram(_SHARES),
        }

    def add(self, name: str, by: float = 1, **labels: str) -> None:
        """Count `by` more of `name`."""
        key = (name, tuple(labels.items()))
        self._counts[key] = self._counts.get(key, 0) + by

    def see(self, name: str, value: float) -> None:
        """Note one value of a distribution."""
        self._seen[name].see(value)

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return all counts, and `gauges` as they are now."""
        lines = []
        for name in dict.fromkeys(name for name, _ in self._counts):
            lines += _head(name, "counter")
            lines += [_line(name, labels, value) for (of, labels), value in self._counts.items() if of == name]
        for name, value in gauges.items():
            lines += [*_head(name, "gauge"), _line(name, (), value)]
        for name, histogram in self._seen.items():
            lines += [*_head(name, "histogram"), *histogram.lines(name)]
        return "\n".join(lines) + "\n"


class _Histogram:
    def __init__(self, ends: Sequence[float]):
        self._ends, self._counts, self._sum = ends, [0] * (len(ends) + 1), 0.0

    def see(self, value: float) -> None:
        self._counts[bisect_left(self._ends, value)] += 1
        self._sum += value

    def lines(self, name: str) -> Iterator[str]:
        below = 0
        for end, count in zip((*map(str, self._ends), "+Inf"), self._counts, strict=True):
            below += count
            yield _line(f"{name}_bucket", (("le", end),), below)
        yield _line(f"{name}_sum", (), self._sum)
        yield _line(f"{name}_count", (), below)


def _head(name: str, kind: str) -> list[str]:
    return [f"# HELP dualread_{name} {_WORDS[name]}", f"# TYPE dualread_{name} {kind}"]


def _line(name: str, labels: Sequence[tuple[str, str]], value: float) -> str:
    shown = ",".join(f'{label}="{of}"' for label, of in labels)
    return f"dualread_{name}{{{shown}}} {value:g}" if labels else f"dualread_{name} {value:g}"
