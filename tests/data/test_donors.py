import hashlib

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualread.artifacts.tables import from_rows
from dualread.data import candidates
from dualread.data.donors import count_pairs, pair
from dualread.errors import ConfigError, DataError
from dualread.grading.canonical import canonical
from dualread.schema.columns import MANIFEST, PAIRS
from tests.drawn import examples


def _row(number, *, answers=("ct",), image="a", **changes):
    return {
        "sample_id": f"d/test/{number}",
        "dataset": "d",
        "split": "test",
        "role": "test",
        "question": "what is it?",
        "question_key": "what is it",
        "reference_answers": list(answers),
        "answer_type": "open",
        "content_family": None,
        "options": [],
        "modality": "ct",
        "location": None,
        "image_files": [f"images/{image}.jpg"],
        "image_roles": [],
        "pixel_sha256s": [f"pixels {image}"],
        "image_id": image,
        "cluster_id": image,
        "source_row": number,
    } | changes


def _manifest(*rows):
    return from_rows(list(rows), MANIFEST)


def _found(rows, match_on=("modality",)):
    pairs, _ = pair(_manifest(*rows), match_on)
    return {tuple(row) for row in pairs.select("sample_id", "donor_sample_id").iter_rows()}


BOTH = {("d/test/0", "d/test/1"), ("d/test/1", "d/test/0")}


def _smallest_digest(source, candidates):
    return min(candidates, key=lambda donor: _sha256(f"{source}|{donor}"))


def _next_in_the_ring(source, candidates):
    """Return the candidate whose digest follows that of the source; behind the last digest comes the first."""
    return min(candidates, key=lambda donor: (_sha256(donor) < _sha256(f"{source}|"), _sha256(donor)))


def _sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def brute_force(manifest, match_on, choose=_smallest_digest):
    """Find the pairs by comparing every two rows, as the protocol describes."""
    rows = manifest.rows(named=True)
    found = {}
    for source in rows:
        candidates = []
        for donor in rows:
            same = all(source[c] == donor[c] for c in ("dataset", "split", "question_key"))
            matched = all(source[c] is not None and source[c] == donor[c] for c in match_on)
            golds = [{canonical(a) for a in row["reference_answers"]} - {""} for row in (source, donor)]
            differ = golds[0] and golds[1] and not golds[0] & golds[1]
            elsewhere = source["image_id"] != donor["image_id"] and source["pixel_sha256s"] != donor["pixel_sha256s"]
            if same and matched and differ and elsewhere:
                candidates.append(donor)
        if candidates:
            images = {donor["sample_id"]: donor["image_id"] for donor in candidates}
            donor = choose(source["sample_id"], images)
            found[source["sample_id"]] = (donor, images[donor], len(candidates))
    return found


@st.composite
def manifests(draw):
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["q1", "q2"]),
                st.lists(st.sampled_from(["", "yes", "Yes.", "no", "left", "right"]), min_size=1, max_size=2),
                st.sampled_from("abcd"),
                st.sampled_from(["ct", "mri", None]),
                st.sampled_from(["p1", "p2", "p3"]),
            ),
            max_size=14,
        )
    )
    return [
        _row(i, answers=answers, image=image, question_key=key, modality=modality, pixel_sha256s=[pixels])
        for i, (key, answers, image, modality, pixels) in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("largest", "choose"), [(candidates.LARGEST_COMPARED, _smallest_digest), (1, _next_in_the_ring)]
)
@settings(max_examples=examples(80))
@given(
    rows=manifests(), random=st.randoms(), match_on=st.sampled_from([(), ("modality",), ("modality", "answer_type")])
)
def test_equals_a_brute_force_search_in_any_row_order(largest, choose, rows, random, match_on):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "LARGEST_COMPARED", largest)
        _equals_a_brute_force_search(rows, random, match_on, choose)


def _equals_a_brute_force_search(rows, random, match_on, choose):
    manifest = _manifest(*rows)
    pairs, audit = pair(manifest, match_on)
    columns = ["sample_id", "donor_sample_id", "donor_image_id", "n_candidates"]
    assert {row[0]: row[1:] for row in pairs.select(columns).iter_rows()} == brute_force(manifest, match_on, choose)
    assert count_pairs(manifest, match_on).equals(audit)
    random.shuffle(rows)
    again, audit_again = pair(_manifest(*rows), match_on)
    assert pairs.equals(again)
    assert audit.equals(audit_again)


def _two(number, first="a", second="b", **changes):
    shown = {"image_files": [f"images/{name}.jpg" for name in (first, second)], "image_id": f"{first} + {second}"}
    pixels = [f"pixels {name}" for name in (first, second)]
    return _row(number) | {**shown, "pixel_sha256s": pixels, "cluster_id": first} | changes


OLD_NEW = {"image_roles": ["prior", "current"]}


@pytest.mark.parametrize(
    ("donor", "found"),
    [
        (_two(1, "c", "d"), BOTH),
        (_row(1, image="c"), set()),  # another number of images
        (_two(1, "c", "b"), set()),  # a picture of the source
        (_two(1, "b", "c"), set()),  # the same at another place
        (_two(1, "c", "d", cluster_id="a"), set()),
        (_two(1, "c", "d", **OLD_NEW), set()),  # other roles
    ],
)
def test_a_donor_shows_as_many_other_images_in_the_same_roles(donor, found):
    assert _found([_two(0), donor | {"reference_answers": ["mri"]}]) == found


def test_images_of_the_same_roles_are_paired():
    assert _found([_two(0, **OLD_NEW), _two(1, "c", "d", reference_answers=["mri"], **OLD_NEW)]) == BOTH


@pytest.mark.parametrize(
    ("donor", "found"),
    [
        (_two(1, "a", "c", **OLD_NEW), BOTH),  # of the same patient: the current image alone is another
        (_two(1, "a", "c", cluster_id="z", **OLD_NEW), BOTH),
        (_two(1, "a", "b", **OLD_NEW), set()),  # nothing is exchanged
        (_two(1, "c", "d", **OLD_NEW), set()),  # both images are
        (_two(1, "c", "b", **OLD_NEW), set()),  # the prior image is
        (_two(1, "a", "c", image_roles=["current", "prior"]), set()),
        (_two(1, "a", "c"), set()),  # no image has the role
    ],
)
@pytest.mark.parametrize("names_donors", [False, True])
def test_with_a_role_the_images_of_this_role_are_exchanged_alone(donor, found, names_donors):
    """A donor is found where a named one is accepted, and refused in a sentence where there is none."""
    rows = [_two(0, **OLD_NEW), donor | {"reference_answers": ["mri"]}]
    if names_donors:
        rows = [row | {"donor_sample_id": f"d/test/{1 - k}"} for k, row in enumerate(rows)]
    # Further questions: about the same images with the same answer, and about other ones.
    rows += [_two(2, **OLD_NEW), _two(3, "x", "y", reference_answers=["mri"], **OLD_NEW)]
    rows[2] |= {"donor_sample_id": None, "question_key": "q"}
    if found:
        pairs, audit = pair(_manifest(*rows), ["modality"], "current")
        assert set(pairs.select("sample_id", "donor_sample_id").iter_rows()) == found
        counted = count_pairs(_manifest(*rows), ["modality"], "current")
        assert counted["rule"][0] == "match on modality, and on all images but 'current'"
        assert names_donors or counted.equals(audit)
        return
    expected = "d/test/0: its donor d/test/1 shows" if names_donors else "pairing.role: 'current': no question has"
    with pytest.raises(DataError, match=expected):
        pair(_manifest(*rows), ["modality"], "current")


@pytest.mark.parametrize("column", ["question_key", "split", "dataset", "modality"])
def test_a_pair_agrees_in_what_it_must_share(column):
    assert _found([_row(0), _row(1, image="b", answers=["mri"], **{column: "other"})]) == set()


@pytest.mark.parametrize(("n", "choose"), [(8, _smallest_digest), (9, _next_in_the_ring)])
def test_a_group_is_large_beyond_the_limit(monkeypatch, n, choose):
    monkeypatch.setattr(candidates, "LARGEST_COMPARED", 8)
    rows = [_row(i, image=f"b{i}", answers=[f"g{i}"]) for i in range(n)]
    pairs, audit = pair(_manifest(*rows), ["modality"])
    names = [row["sample_id"] for row in rows]
    expected = {source: choose(source, [of for of in names if of != source]) for source in names}
    assert dict(pairs.select("sample_id", "donor_sample_id").iter_rows()) == expected
    assert ("in 1 group of more than 8 questions" in audit["rule"][0]) is (n > 8)


def test_audit_counts():
    # Rows 0 and 1 pair, with one candidate each; row 2 has no gold and row 3 no modality, so 2 of 4 are eligible.
    rows = [
        _row(0),
        _row(1, image="b", answers=["mri"]),
        _row(2, image="c", answers=[""]),
        _row(3, image="e", answers=["x"], modality=None),
    ]
    _, audit = pair(_manifest(*rows), ["modality"])
    assert audit.rows() == [("match on modality", 4, 2, 2, 1.0)]
    # Without modality the three rows with a gold pair in both directions: two candidates each.
    _, audit = pair(_manifest(*rows), [])
    assert audit.rows() == [("match on nothing", 4, 3, 3, 2.0)]


def test_without_pairs_the_table_has_its_columns_and_the_mean_is_null():
    pairs, audit = pair(_manifest(), ["modality"])
    assert pairs.schema == pl.Schema({name: column.dtype for name, column in PAIRS.columns.items()})
    assert audit.rows() == [("match on modality", 0, 0, 0, None)]


def test_if_the_data_set_names_donors_only_these_are_used():
    # Row 2 would be a computed source and the donor of rows 0 and 1; the rows named do not even share a modality.
    rows = [
        _row(0, donor_sample_id="d/test/1"),
        _row(1, image="b", answers=["mri"], modality=None),
        _row(2, image="c", answers=["x-ray"]),
    ]
    pairs, audit = pair(_manifest(*rows), ["modality"])
    assert pairs.rows() == [("d/test/0", "d/test/1", "what is it", "a", "b", 1)]
    assert audit.rows() == [("named by the data set", 3, 1, 1, 1.0)]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"sample_id": "d/test/9"}, "is not in the table of questions"),
        ({"question_key": "where is it"}, "does not ask the same question"),
        ({"split": "train"}, "does not ask the same question"),
        ({"cluster_id": "a"}, "shows an image of the same patient"),
        ({"pixel_sha256s": ["pixels a"]}, "shows the same image"),
        ({"pixel_sha256s": ["pixels b", "pixels c"]}, "shows another number of images, or images in other roles"),
        ({"image_roles": ["current"]}, "shows another number of images, or images in other roles"),
        ({"reference_answers": ["C T", "CT."]}, "does not have another gold answer"),
        ({"reference_answers": [" . "]}, "does not have another gold answer"),
    ],
)
def test_a_named_donor_that_breaks_a_condition_is_refused(changes, problem):
    rows = [_row(0, donor_sample_id="d/test/1"), _row(1, image="b", answers=["mri"]) | changes]
    with pytest.raises(DataError, match=rf"d/test/0: its donor d/test/1 {problem}\. Correct or remove its donor_id"):
        pair(_manifest(*rows), [])


def test_an_unknown_column_is_refused():
    with pytest.raises(ConfigError, match=r"pairing\.match_on: no column 'organ'\. Known: sample_id, dataset"):
        pair(_manifest(), ["organ"])
