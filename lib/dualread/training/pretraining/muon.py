"""Muon, an optimizer of weight matrices: each step follows the momentum of a matrix, made nearly orthogonal.

It is `torch.optim.Muon` in float32. Torch's own multiplies matrices in bfloat16, which takes 20 times as long on a CPU
without AVX-512.

References:
    Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024). Liu et al., "Muon is Scalable for
    LLM Training" (2025), for the scale of its updates, with which learning rates of AdamW fit Muon.
"""

import math

import torch


class Muon(torch.optim.Optimizer):
    """All parameters are matrices. Groups set `lr`, `momentum` (Nesterov's), and `weight_decay`."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Update the matrices that have a gradient; a layer that the model does not use has none."""
        for group in self.param_groups:
            rate, momentum = group["lr"], group["momentum"]
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state["mean"] = torch.zeros_like(matrix)
                mean = state["mean"].lerp_(matrix.grad, 1 - momentum)
                direction = _orthogonal(matrix.grad.lerp(mean, momentum))
                matrix.mul_(1 - rate * group["weight_decay"])
                matrix.sub_(direction, alpha=0.2 * math.sqrt(max(matrix.shape)) * rate)


def _orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Return a matrix with the singular vectors of `matrix` [M, N], and singular values of .68 to 1.21."""
    # It is Newton and Schulz's iteration with Jordan's coefficients. Values below .002 of the matrix's norm stay
    # smaller.
    tall = matrix.shape[0] > matrix.shape[1]
    wide = matrix.T if tall else matrix
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=-4.775, alpha=2.0315), wide, beta=3.4445)
    return wide.T if tall else wide
