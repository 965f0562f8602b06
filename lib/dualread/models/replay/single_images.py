"""The states of single images, where a prompt shows several: h_image_1, h_image_2, ..., equation 2 over each.

They are of the image that is shown at this place, whatever its role.
"""

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from dualread.errors import ArtifactError
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.replay.replayed import Replayed
from dualread.schema.replay import OF_ONE_IMAGE

if TYPE_CHECKING:
    from torch import Tensor


def with_images(replayed: Replayed, states: "Tensor", prompt: EncodedPrompt, image_token_id: int) -> Replayed:
    """Return what was read of a completion, and of each of its claims, with the mean of each image's `states` [M, D].

    Raises:
        ArtifactError: The tokens of an image do not stand together, or those of two images do.
    """
    sizes = [len([*run]) for token, run in groupby(prompt.token_ids) if token == image_token_id]
    if len(sizes) != (n := len(prompt.image_sha256.split())):
        raise ArtifactError(
            f"{prompt.row}: the prompt shows {n} images, and their tokens stand in {len(sizes)} places, so that nobody"
            f" knows which are of which. Expected one place for each. Leave out what reads {OF_ONE_IMAGE}<number>."
        )
    means = [part.float().mean(dim=0).cpu().numpy() for part in states.split(sizes)] if sizes else []
    named = {f"{OF_ONE_IMAGE}{k}": mean for k, mean in enumerate(means, start=1)}
    claims = tuple(replace(claim, vectors=claim.vectors | named) for claim in replayed.claims)
    return replace(replayed, vectors=replayed.vectors | named, claims=claims)
