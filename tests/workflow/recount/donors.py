"""The donor pairs: which question lends its image to which, chosen again from the manifests."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.workflow.recount.study import Study


def differences(study: Study) -> list[str]:
    """Return a line for every question whose donor is another than the rule's, or that has one on one side only."""
    found = []
    for dataset in (study.in_distribution, *(name for name in study.ood if study.pairs(name) is not None)):
        spec = json.loads((study.results / "pairs" / dataset / "test" / "MANIFEST.json").read_text())["spec"]
        rows, clusters = study.manifest(dataset).to_dicts(), study.clusters(dataset, "test")
        chosen = {row["sample_id"]: row["donor_sample_id"] for row in rows if row["donor_sample_id"]}
        if not chosen:  # the data set names none
            rows = [row | {"cluster": clusters[row["image_id"]]} for row in rows]
            chosen = dict(_pairs(rows, spec["match_on"], spec.get("role")))
        pairs = study.pairs(dataset)
        assert pairs is not None
        stored = dict(pairs.select("sample_id", "donor_sample_id").iter_rows())
        for name in sorted(chosen.keys() | stored.keys()):
            if chosen.get(name) != stored.get(name):
                found.append(f"pairs {dataset} {name}: donor {stored.get(name)}, expected {chosen.get(name)}")
    return found


def _pairs(rows: Sequence[dict[str, Any]], match_on: Sequence[str], role: str | None) -> Iterator[tuple[str, str]]:
    """Yield each question with the donor of the smallest sha256(source id | donor id)."""
    for source in rows:
        candidates = [donor["sample_id"] for donor in rows if _lends(source, donor, match_on, role)]
        if candidates:
            own = source["sample_id"]
            yield own, min(candidates, key=lambda name, own=own: hashlib.sha256(f"{own}|{name}".encode()).hexdigest())


def _lends(source: dict[str, Any], donor: dict[str, Any], match_on: Sequence[str], role: str | None) -> bool:
    same = all(source[name] == donor[name] is not None for name in ("question_key", *match_on))
    as_many = len(source["pixel_sha256s"]) == len(donor["pixel_sha256s"])
    golds = [{_gold(answer) for answer in row["reference_answers"]} - {frozenset()} for row in (source, donor)]
    others = source["cluster"] != donor["cluster"]
    if role is not None:  # at its places other pictures, at all others the same ones
        pictures = zip(source["image_roles"], source["pixel_sha256s"], donor["pixel_sha256s"], strict=as_many)
        others = as_many and all((own != lent) == (name == role) for name, own, lent in pictures)
    return same and as_many and others and all(golds) and not golds[0] & golds[1]


def _gold(answer: str) -> frozenset[str]:
    """Return the items of an answer in any order, case and spaces ignored: enough for the phantoms' gold answers."""
    items = re.split(r"[,;&]|\band\b", answer.lower())
    return frozenset(" ".join(re.sub(r"^\W+|\W+$", "", item).split()) for item in items) - {""}
