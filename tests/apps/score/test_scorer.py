"""Scoring images with an untrained actor, in batches and alone, and everything that may be wrong with them."""

import copy
import dataclasses
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dualread import limits
from dualread.apps.score import loading
from dualread.apps.score.results import Failed, Question, Scored, shown
from dualread.apps.score.scorer import Scorer
from dualread.artifacts.tensors import read_header, read_tensors, write_tensors
from dualread.data.gray import through_windows
from dualread.data.images import open_image
from dualread.errors import ArtifactError, ConfigError, DataError, ReaderError
from dualread.models import prompts
from dualread.models.actor import ReadSpec, Request, SeededDecoding
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.replay import forward, rules
from dualread.models.replay.forward import replay_batch
from dualread.models.replay.positions import locate
from dualread.readers.answers import COLUMNS, Answers
from dualread.readers.artifact import load_reader
from dualread.readers.base import score
from tests.apps.score import small
from tests.data.dicoms import dicom
from tests.drawn import attempt
from tests.tiny import FAMILIES, MODEL

LESION = "Is there a lesion?"


def same(one: Scored, other: Scored) -> bool:
    """Whether two results are equal up to the rounding of float32."""
    values = ((r.confidence, r.psr, r.per, *(m.confidence for m in r.methods.values())) for r in (one, other))
    return one.completion == other.completion and bool(np.allclose(*map(list, values), atol=1e-6))


def by_hand(study, method, path, question):
    """Ask, replay and score one question, with nothing but the rooms below."""
    opened = open_checkpoint(study.actor / "checkpoint", MODEL)
    text = prompts.render("shared", question=question)
    request = Request(text=text, images=[path], image_name="x", row="x")
    [[completion]] = TransformersEngine(opened, 1).answer([request], SeededDecoding(**small.DECODING, seed=0))
    prompt = opened.encoder.prompt(text, images=[path], row="x")
    [replayed] = replay_batch(opened, [prompt], [completion.token_ids], ReadSpec(kappa=0.1))
    states = {name: vector[np.newaxis] for name, vector in replayed.vectors.items()}
    table = pl.DataFrame([dict.fromkeys(COLUMNS, "x")], schema=dict.fromkeys(COLUMNS, pl.String))
    answers = Answers(table=table, source=states.__getitem__, rows=np.zeros(1, np.int64))
    return completion.text, float(
        score(load_reader(study.reader(method) / "reader.safetensors"), answers).confidence[0]
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_result_is_what_the_rooms_below_give_one_after_the_other(studies, family):
    study = studies(family)
    result = Scorer.load(study.reader("dualread"), study.actor)(study.image(1), LESION)
    parts = {"dualread": result.confidence, "psr": result.psr, "per": result.per}
    for method, value in parts.items():
        completion, confidence = by_hand(study, method, study.image(1), LESION)
        assert (completion, confidence) == (result.completion, pytest.approx(value, abs=1e-6))
    log_odds = [np.log(p / (1 - p)) for p in (result.psr, result.per)]
    assert result.confidence == pytest.approx(1 / (1 + np.exp(-np.mean(log_odds))), abs=1e-6)


def test_batches_change_no_result(study, scorer):
    texts = [LESION, "Which organ is it?"] * 5
    questions = [Question(image=study.image(i % 3), question=text) for i, text in enumerate(texts)]
    alone = [scorer(asked.image, asked.question) for asked in questions]
    assert all(same(*pair) for pair in zip(scorer.each(questions), alone, strict=True))
    assert len({round(result.confidence, 9) for result in alone}) > 3


def test_a_donor_is_asked_the_same_question(study, scorer):
    result = scorer(study.image(1), LESION, donor=study.image(2))
    own, donor = scorer(study.image(1), LESION), scorer(study.image(2), LESION)
    assert same(result, own)
    assert same(result.donor, donor)
    assert result.drop == pytest.approx(own.confidence - donor.confidence, abs=1e-6)
    assert own.drop is None


def viewed(scorer, asked, view):
    """What the actor is asked or shown besides, for readers of one view."""
    actor = copy.copy(scorer._loaded.actor)
    actor._needs = dataclasses.replace(scorer._loaded.needs, views=[view])
    return actor.answer(asked).views[view.name]


def test_samples_depend_on_the_content_of_the_image_and_on_nothing_else(study, scorer):
    of = scorer._loaded.actor.encoder, scorer._loaded.needs.requirements

    def drawn(paths):
        asked = [shown(Question(image=path, question=LESION), path, *of) for path in paths]
        return viewed(scorer, asked, small.SAMPLES).texts

    alone = drawn([study.image(1)])[0]
    assert drawn([study.image(2), study.image(1)])[1] == alone
    assert drawn([study.image(2)])[0] != alone


def test_a_measure_is_taken_of_the_own_answer(study, scorer):
    """The entropies that VAUQ reads; with another image, both are others."""
    of = scorer._loaded.actor.encoder, scorer._loaded.needs.requirements

    def entropies(seed):
        path = study.image(seed)
        view = viewed(scorer, [shown(Question(image=path, question=LESION), path, *of)], small.CORE)
        return [float(view.features(name)[0, 0]) for name in ("entropy", "entropy_hidden")]

    first, other = entropies(0), entropies(1)
    assert first == entropies(0)
    assert len({*first, *other}) == 4


def test_a_method_of_choices_and_one_that_sees_no_image_say_what_they_think(study, scorer):
    result = scorer(study.image(1), LESION)
    assert set(result.methods) == {"dualread", "rlvr", "question_prior", "expected", "sequence_likelihood"}
    assert 0 < result.methods["expected"].confidence < 1
    assert result.methods["rlvr"].imputed == (result.parse_status != "valid")
    other = scorer(study.image(2), LESION)
    # In each ten answers, those in places 0 to 6 are fitted on, of which 0, 2, 4 and 6 are correct.
    assert other.methods["question_prior"].confidence == result.methods["question_prior"].confidence == 4 / 7
    assert other.methods["expected"].confidence != result.methods["expected"].confidence


def test_options_are_shown_as_in_the_workflow(study, scorer):
    plain, chosen = scorer(study.image(1), LESION), scorer(study.image(1), LESION, options=["CT", "MRI"])
    assert not same(plain, chosen)
    of = scorer._loaded.actor.encoder, scorer._loaded.needs.requirements
    for n in (1, 2, 10, 11):
        asked = Question(image=study.image(1), question=LESION, options=[f"option {k}" for k in range(n)])
        found, error = attempt(lambda asked=asked: shown(asked, study.image(1), *of), DataError)
        assert (found is None) == (n in (1, 11))
        assert found is not None or f"{n} options, expected none, or 2 to 10" in str(error)


def test_a_bare_reader_decides_nothing_and_says_so(study, scorer):
    decision = scorer(study.image(1), LESION).decision
    assert (decision.keep, decision.threshold) == (None, None)
    assert decision.reason.startswith("no threshold travels with this reader")
    for asked, said in (
        ({"target_risk_percent": 10}, "empirical at 10%"),
        ({"methods": ["question_prio"]}, "Did you me"),
    ):
        with pytest.raises(ConfigError, match=said):
            Scorer.load(study.reader("dualread"), study.actor, **asked)


@pytest.fixture
def bad(study, tmp_path, monkeypatch):
    """Questions that cannot be answered, and what is said about each."""
    whole = study.image(1).read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "folder.png").mkdir()
    Image.new("L", (3000, 3000)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(limits, "IMAGE_PIXELS", 2_000_000)
    encoder = study.tiny.load()[1]
    token, stop = encoder.processor.image_token, encoder.tokenizer.eos_token
    return [
        (tmp_path / "none.png", LESION, r"none\.png: .* cannot be read \(No such file"),
        (tmp_path / "cut.png", LESION, r"cut\.png: cannot be decoded"),
        (tmp_path / "folder.png", LESION, r"folder\.png: the image cannot be read"),
        (tmp_path / "bomb.png", LESION, r"bomb\.png: the image is too large"),
        *((study.image(1), text, "the question is empty") for text in ("", " \n")),
        (study.image(1), None, "expected a text"),
        (3, LESION, "the image is a int"),
        ([], LESION, "0 images: expected one"),
        (study.image(1), "Is \ud800 a lesion?", "half of a character"),
        *((study.image(1), text, "control token") for text in (f"Is {token} a lesion?", f"Yes.{stop} Is it?")),
        (study.image(1), "long " * 500, "more than max_prompt_tokens"),
    ]


def test_questions_that_fail_have_one_sentence_and_stop_no_other_one(study, scorer, bad):
    good = [Question(image=study.image(i), question=LESION) for i in range(5)]
    broken = [Question(image=path, question=question) for path, question, _ in bad]
    mixed = [good[0], *broken[:3], good[1], good[2], *broken[3:], good[3], good[4]]
    results = list(scorer.each(mixed))
    failed = [result.error for result in results if isinstance(result, Failed)]
    for error, (*_, said) in zip(failed, bad, strict=True):
        assert re.search(said, error)
        assert "\n" not in error.strip()
    assert [isinstance(result, Failed) for result in results] == [asked in broken for asked in mixed]
    alone = [scorer(asked.image, asked.question) for asked in good]
    answered = [result for result in results if isinstance(result, Scored)]
    assert all(same(*pair) for pair in zip(answered, alone, strict=True))
    with pytest.raises(DataError, match=bad[0][2]):
        scorer(*bad[0][:2])


def test_an_error_of_torch_fails_only_its_own_question(study, scorer, monkeypatch):
    answer = scorer._loaded.actor.answer

    def out_of_memory(asked):
        if any(one.question == "big" for one in asked):
            raise RuntimeError("not enough memory")
        return answer(asked)

    monkeypatch.setattr(scorer._loaded.actor, "answer", out_of_memory)
    asked = [Question(image=study.image(1), question=text) for text in (LESION, "big", LESION)]
    first, second, third = scorer.each(asked)
    assert isinstance(second, Failed)
    assert second.error == "not enough memory"
    assert same(first, third)


# --- Readers and actors that do not belong together


def test_another_actor_is_refused_by_name_or_used_and_said(study, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(study.actor / "checkpoint", other)
    config = (other / "generation_config.json").read_text()
    (other / "generation_config.json").write_text(config + "\n")
    (other / "README.md").write_text("changes nothing")
    with pytest.raises(ArtifactError, match=r"checkpoint: generation_config\.json has sha256 \w{12}, expected \w{12}"):
        Scorer.load(study.reader("dualread"), other)
    allowed = Scorer.load(study.reader("dualread"), other, allow_other=True)
    result = allowed(study.image(1), LESION)
    assert len(result.notes) == 1
    assert result.notes[0].startswith("checkpoint: generation_config.json has sha256")
    (other / "generation_config.json").write_text(config)
    assert Scorer.load(study.reader("dualread"), other)(study.image(1), LESION).notes == ()
    (other / "chat_template.jinja").write_text("{{ messages }}")
    with pytest.raises(ArtifactError, match=r"checkpoint: chat_template\.jinja (is new|has sha256)"):
        Scorer.load(study.reader("dualread"), other)


def test_another_prompt_is_refused_by_name_or_used_and_said(study, scorer, monkeypatch):
    place = study.reader("dualread"), study.actor
    with pytest.raises(ArtifactError, match="the prompt is 'vl_calibration', expected 'shared'"):
        Scorer.load(*place, prompt="vl_calibration")
    result = Scorer.load(*place, prompt="vl_calibration", allow_other=True)(study.image(1), LESION)
    assert result.notes == ("the prompt is 'vl_calibration', expected 'shared'",)
    assert result.confidence != pytest.approx(scorer(study.image(1), LESION).confidence, abs=1e-6)
    with pytest.raises(ConfigError, match=r"prompt 'p_true': .* Known: .*shared"):
        Scorer.load(*place, prompt="p_true")
    monkeypatch.setattr(prompts, "template_sha256", lambda name: "0" * 64)
    with pytest.raises(ArtifactError, match="the prompt 'shared' has sha256 000000000000, expected"):
        Scorer.load(*place)


def other_position(*given):
    found = locate(*given)
    return dataclasses.replace(found, close=found.close - 1)


@pytest.mark.parametrize(
    ("name", "other", "vector"),
    [
        ("global_state", lambda image: image.float().amax(dim=0), "h_global"),
        ("answer_state", lambda states: states[[0, -1]].float().mean(dim=0), "h_ans"),
        ("answer_state", lambda states: states[-2:].float().mean(dim=0), "h_ans"),
        ("locate", other_position, "h_close"),
    ],
    ids=["largest", "first and last", "last two", "token before"],
)
def test_states_that_are_read_in_another_way_are_refused(study, monkeypatch, name, other, vector):
    monkeypatch.setattr(rules if name == "locate" else forward, name, other)
    with pytest.raises(ArtifactError, match=rf"{vector} of the replay's example is .*, expected .*: fit it again\."):
        Scorer.load(study.reader("dualread"), study.actor)
    assert Scorer.load(study.reader("psr"), study.actor)  # it reads the state before the answer


def edited(study, folder, header=lambda header: header, **tensors):
    """A copy of the reader of dualread with another header or other tensors."""
    file = study.reader("dualread") / "reader.safetensors"
    made = folder / "reader.safetensors"
    write_tensors(made, {**read_tensors(file), **tensors}, header(read_header(file)))
    return made


def test_states_that_are_read_from_another_layer_are_refused(study, tmp_path):
    def moved(header):
        for reader in (header["parents"]["pre"], header["parents"]["post"], header):
            reader["provenance"]["replay"]["middle_layer"] = 2
        return header

    with pytest.raises(ArtifactError, match="middle_layer is 3, expected 2"):
        Scorer.load(edited(study, tmp_path, moved), study.actor)


def test_a_file_that_is_no_reader_is_refused_in_one_sentence(study, tmp_path):
    whole = (study.reader("psr") / "reader.safetensors").read_bytes()
    for name, content in (("empty", b""), ("text", b"no reader"), ("cut", whole[:-7])):
        (tmp_path / f"{name}.safetensors").write_bytes(content)
    (tmp_path / "folder").mkdir()
    weights = edited(study, tmp_path, header=lambda header: {**header, "weights": 3})
    wrong = [tmp_path / f"{name}.safetensors" for name in ("empty", "text", "cut")]
    for file in (*wrong, study.actor / "checkpoint" / "model.safetensors", weights, study.image(1)):
        with pytest.raises(ArtifactError, match=r"Expected the reader\.safetensors") as error:
            Scorer.load(file, study.actor)
        assert "\n" not in str(error.value)
        assert file.name in str(error.value)
    reader = study.reader("dualread")
    for place, said in (
        ((tmp_path / "folder", study.actor), r"no reader\.safetensors here"),
        ((tmp_path / "nowhere", study.actor), "no such file or folder"),
        ((reader, tmp_path / "folder"), r"no config\.json here"),
    ):
        with pytest.raises(ArtifactError, match=said):
            Scorer.load(*place)


def test_a_reader_that_says_too_little_or_whose_weights_do_not_fit_is_refused(study, tmp_path):
    def without(header):
        kept = {name: value for name, value in header["provenance"].items() if name != "scoring"}
        return {**header, "provenance": kept}

    def by_meaning(header):
        scoring = header["provenance"]["scoring"]
        view = {"name": "meaning", "image": "original", "prompt": scoring["prompt"], "groups": "entailment"}
        return {**header, "provenance": {**header["provenance"], "scoring": {**scoring, "views": [view]}}}

    name = "post.weight"
    weight = read_tensors(study.reader("dualread") / "reader.safetensors")[name]
    for how, kind, said in (
        ({"header": without}, ArtifactError, "does not say how its actor"),  # of an earlier version
        ({"header": by_meaning}, ArtifactError, "groups answers by meaning .view meaning."),
        ({"header": lambda header: {**header, "parents": {}, "provenance": 7}}, ArtifactError, "not a reader"),
        ({name: np.full_like(weight, np.nan)}, ArtifactError, f"the weights {name} hold NaN"),
        ({name: weight[:, :5]}, ReaderError, "dualread: the reader's weights do not fit"),
    ):
        with pytest.raises(kind, match=said):
            Scorer.load(edited(study, tmp_path, **how), study.actor)


# --- How an image is shown


def test_what_is_chosen_to_show_an_image_is_said(study, scorer, tmp_path):
    picture = open_image(study.image(1))
    Image.new("RGB", picture.size).save(tmp_path / "x.tif", save_all=True, append_images=[picture])
    with pytest.raises(DataError, match=r"x\.tif: has several frames"):
        scorer(tmp_path / "x.tif", LESION)
    second = scorer(tmp_path / "x.tif#2", LESION)
    assert same(second, scorer(picture, LESION))
    assert second.notes == ("image: a named frame is shown (frame 2)",)
    black = scorer(picture, LESION, donor=tmp_path / "x.tif#1")
    assert black.notes == (
        "donor's image: a named frame is shown (frame 1)",
        "donor's image: the picture has a single color (0, 0, 0)",
    )


def test_bits_and_windows_are_those_that_are_said_and_a_part_of_the_digest(study, scorer, tmp_path):
    shown = np.asarray(open_image(study.image(1)).convert("L")).astype(int)
    Image.fromarray((shown * 4095 // 255).astype(np.uint16)).save(tmp_path / "x.png")
    with pytest.raises(DataError, match=r"x\.png: its 16-bit gray values end at"):
        scorer(tmp_path / "x.png", LESION)
    units = shown  # 0 to 255 Hounsfield units
    (tmp_path / "x.dcm").write_bytes(dicom(units + 1024, Modality="CT", RescaleSlope=1, RescaleIntercept=-1024))
    windows = [[-1024, 1024], [-135, 215], [0, 80]]
    chosen = Scorer.load(study.reader("dualread"), study.actor, bits=12, ct_windows=windows)
    colored = Image.fromarray(through_windows(units, windows))
    for name, plain in (("x.png", open_image(study.image(1)).convert("L")), ("x.dcm", colored)):
        found, expected = chosen(tmp_path / name, LESION), scorer(plain, LESION)
        assert found.completion == expected.completion
        assert np.isclose(found.confidence, expected.confidence, atol=1e-6)
    assert found.notes[0].startswith("image: CT shown through three windows of Hounsfield units (-1024 to 1024, ")
    many = [Scorer(chosen._loaded, bits=bits, ct_windows=w).digest for bits in (None, 12) for w in (None, windows)]
    assert len(set(many)) == 4
    for wrong, said in (
        *(({"bits": n}, f"bits {n}: expected 9 to 16") for n in (8, 17)),
        ({"ct_windows": [[0, 80]]}, r"ct_windows \[\[0, 80\]\]: exp"),
    ):
        with pytest.raises(ConfigError, match=said):
            Scorer.load(study.reader("dualread"), study.actor, **wrong)


KILLED = """
import os
from dualread.apps.score import loading

with loading._temporary_folder() as folder:
    (folder / "model.safetensors").touch()
    os.kill(os.getpid(), 9)
"""


def test_a_merged_model_that_a_killed_process_has_left_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    subprocess.run([sys.executable, "-c", KILLED], check=False)
    [left] = tmp_path.iterdir()
    with loading._temporary_folder():
        assert left.exists()  # it could be one that its process has not locked yet
    monkeypatch.setattr(loading, "_SECONDS_TO_LOCK", -1.0)
    with loading._temporary_folder() as first, loading._temporary_folder() as second:
        assert sorted(tmp_path.iterdir()) == sorted([first, second])
    assert not list(tmp_path.iterdir())
