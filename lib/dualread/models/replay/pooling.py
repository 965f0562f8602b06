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
    """Return h_evid: image states [M, D] weighted by a softmax of their cosine to h_ans [D] over kappa (eqs. 3, 4).

    A zero state has cosine 0 (torch's epsilon), so the weights are always defined.
    """
    import torch

    image_states = image_states.float()
    cosine = torch.nn.functional.cosine_similarity(image_states, h_ans.float()[None, :], dim=-1)
    return torch.softmax(cosine / kappa, dim=0) @ image_states
