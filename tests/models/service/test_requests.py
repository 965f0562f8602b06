"""Requests: what is asked, and that an id is the digest of it."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from dualread.data.images import open_image
from dualread.errors import ArtifactError, ConfigError
from dualread.models.conditions import Asked
from dualread.models.images.base import changes_of
from dualread.models.service.requests import body_of, image_url, requests_of
from dualread.schema.answers import Choices, Service
from tests.specs import changed, decoding, image, shard

SERVICE = Service(model="m", log_probs=True, body={})
QUESTION = Asked(sample_id="slake/test/1", text="Is it?", image_files=["images/ab12.png"], image_id="x1")


def only(shard, service=SERVICE, question=QUESTION):
    [request] = requests_of(shard, service, [question])
    return request


def test_an_answer_is_asked_with_log_probabilities():
    body = only(shard()).body
    expected = {"model": "m", "temperature": 0.0, "top_p": 1.0, "n": 1, "max_completion_tokens": 10, "logprobs": True}
    assert body == expected


def test_samples_come_from_one_request_or_from_several():
    asked = shard("original/samples", image="original", decoding=decoding(temperature=1.0, n_samples=8))
    assert [(r.first, r.n) for r in requests_of(asked, SERVICE, [QUESTION])] == [(0, 8)]
    several = list(requests_of(asked, changed(SERVICE, max_choices=3), [QUESTION]))
    assert [(r.first, r.n, r.body["n"]) for r in several] == [(0, 3, 3), (3, 3, 3), (6, 2, 2)]
    assert len({r.custom_id for r in several}) == 3
    assert not any(r.log_probs for r in several)
    asked = shard("original/distorted", decoding=decoding(temperature=1.0, n_samples=3), image="distort", draws=2)
    draws = [replace(QUESTION, draw=draw) for draw in range(2)]  # their samples are numbered on
    made = requests_of(asked, changed(SERVICE, max_choices=2), draws)
    assert [(request.first, request.n) for request in made] == [(0, 2), (2, 1), (3, 2), (5, 1)]


def test_words_are_asked_as_the_first_token():
    body = only(shard("original/p_true", image="original", decoding=None, choices=Choices(words=["Yes", "No"]))).body
    assert (body["max_completion_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 20)


INTEGERS, STATES = {"choices": Choices(integers=[0, 100]), "decoding": None}, {"completions": "original"}


@pytest.mark.parametrize("asked", [shard(**INTEGERS), shard(image="black", **STATES)])
def test_what_services_do_not_give_is_refused(asked):
    with pytest.raises(ConfigError, match="services give no states and no likelihoods of integers"):
        requests_of(asked, SERVICE, [QUESTION])


def test_an_id_changes_with_everything_that_is_asked():
    others = [
        only(shard()),
        only(changed(shard(), split="train")),
        only(changed(shard(), condition="donor")),
        only(shard(decoding=decoding(max_completion_tokens=11))),
        only(shard(), changed(SERVICE, model="other")),
        only(shard(), changed(SERVICE, body={"reasoning_effort": "low"})),
        *(
            only(shard(), question=replace(QUESTION, **one))
            for one in (
                {"sample_id": "slake/test/2"},
                {"text": "Is it so?"},
                {"image_files": ["images/cd34.png"]},
            )
        ),
    ]
    assert len({request.custom_id for request in others}) == len(others)
    assert all(len(request.custom_id) == 64 for request in others)


def test_an_id_does_not_depend_on_what_a_reply_tells_besides_the_answer():
    assert only(shard()).custom_id == only(shard(), changed(SERVICE, log_probs=False)).custom_id


@pytest.fixture
def manifest(tmp_path):
    """An artifact with two pictures."""
    (tmp_path / "images").mkdir()
    for name in ("ab12", "cd34"):
        Image.new("RGB", (8, 6), "white").save(tmp_path / f"images/{name}.png")
    return tmp_path


@pytest.mark.parametrize("how", ["https://x.org/put/", "https://x.org/put", "file"])
def test_images_are_sent_in_their_order_and_before_the_text(manifest, how):
    two = replace(QUESTION, image_files=["images/cd34.png", "images/ab12.png"])
    [turn] = body_of(only(shard(), question=two), manifest, image_url(how))["messages"]
    first = f"file://{manifest}/images/" if how == "file" else "https://x.org/put/"
    urls = [{"type": "image_url", "image_url": {"url": f"{first}{name}.png"}} for name in ("cd34", "ab12")]
    assert turn == {"role": "user", "content": [*urls, {"type": "text", "text": "Is it?"}]}
    turned = replace(two, image_files=two.image_files[::-1])
    assert only(shard(), question=two).custom_id != only(shard(), question=turned).custom_id


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK", "I;16", "RGBA"])
def test_a_service_gets_the_picture_that_we_see(tmp_path, mode):
    values = np.arange(64, dtype=np.uint8).reshape(8, 8) * 3
    picture = (
        Image.fromarray(values.astype(np.uint16) * 257) if mode == "I;16" else Image.fromarray(values).convert(mode)
    )
    file = tmp_path / ("x.tif" if mode == "CMYK" else "x.png")
    picture.save(file)
    url = image_url("data")(file)
    kind, _, content = url.partition(";base64,")
    assert kind == "data:image/png"
    shown = Image.open(io.BytesIO(base64.b64decode(content)))
    assert shown.mode in ("RGB", "L")
    assert np.array_equal(np.asarray(shown.convert("RGB")), np.asarray(open_image(file)))
    if mode in ("RGB", "L"):
        assert base64.b64decode(content) == file.read_bytes()


def test_the_turns_before_the_question_are_sent_before_it(manifest):
    turns = (("system", "Be brief."), ("user", "Ready?"), ("assistant", "Yes."))
    request = only(shard(), question=replace(QUESTION, before=turns))
    *before, last = body_of(request, manifest, image_url("data"))["messages"]
    assert before == [{"role": role, "content": text} for role, text in turns]
    assert last == body_of(only(shard()), manifest, image_url("data"))["messages"][0]
    assert request.custom_id != only(shard()).custom_id


def test_a_turned_picture_is_upright_and_of_equal_frames_one_is_sent(tmp_path):
    picture = Image.new("RGB", (4, 2))
    exif = picture.getexif()
    exif[0x0112] = 6
    picture.save(tmp_path / "x.jpg", exif=exif)
    picture.save(tmp_path / "x.png", save_all=True, append_images=[picture])
    for name, size in (("x.jpg", (2, 4)), ("x.png", (4, 2))):
        content = image_url("data")(tmp_path / name).partition(";base64,")[2]
        sent = Image.open(io.BytesIO(base64.b64decode(content)))
        assert sent.size == size
        assert not getattr(sent, "is_animated", False)


@pytest.mark.parametrize("file", ["../secret.png", "/home/me/secret.png", "images/../../secret.png"])
def test_no_picture_outside_the_artifact_is_sent(tmp_path, file):
    request = only(shard())
    led_out = replace(request, question=replace(request.question, image_files=[file]))
    with pytest.raises(ArtifactError, match=r"secret\.png is outside the artifact"):
        body_of(led_out, tmp_path, image_url("file"))


def test_a_changed_picture_is_asked_about_as_it_is_changed_and_in_the_request_itself(manifest):
    others = [
        only(shard(), question=replace(QUESTION, changes=changes_of(images), draw=draw))
        for images, draw in (
            ([], 0),
            ([image("noise", strength=0.5)], 0),
            ([image("noise", strength=0.5)], 1),
            ([image("noise", strength=1.0)], 0),
            ([image("black")], 0),
            ([image("none")], 0),
        )
    ]
    assert len({request.custom_id for request in others}) == len(others)
    assert others[0].custom_id == only(shard()).custom_id
    for request in others[1:5]:
        for images in ("data", "file", "https://x.org"):
            content = body_of(request, manifest, image_url(images))["messages"][0]["content"]
            url = content[0]["image_url"]["url"]
            assert url.startswith("data:image/png;base64,")
            sent = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
            shown = request.question.request(manifest).images[0]
            assert sent.tobytes() == (shown() if callable(shown) else shown).tobytes()
    [part] = body_of(others[5], manifest, image_url("data"))["messages"][0]["content"]
    assert part == {"type": "text", "text": "Is it?"}
