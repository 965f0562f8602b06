"""The paper's state vectors, computed in float32 from final-layer states (equations 1 to 4)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def answer_state(states: "Tensor") -> "Tensor":
    """Return h_ans, the mean of the answer tokens' states [|A|, D] -> [D] (equation 1)."""
    return states.float().mean(dim=0)


def global_state(image_states: "Tensor") -> "Tensor":
    """Return h_global, the mean of the image tokens' states [M, D] -> [D] (equation 2)."""
    return image_states.float().mean(dim=0)


def evidence_state(h_ans: "Tensor", image_states: "Tensor", kappa: float) -> "Tensor":
    """Return h_evid [D], the weighted mean of the image tokens' states [M, D] (equations 3 and 4).

    The weights are softmax(cos(h_ans, state) / kappa) over the image tokens. They are always defined: a state of zeros
    has cosine 0, because torch keeps the norms above an epsilon.
    """
    import torch

    image_states = image_states.float()
    cosine = torch.nn.functional.cosine_similarity(image_states, h_ans.float()[None, :], dim=-1)
    return torch.softmax(cosine / kappa, dim=0) @ image_states
