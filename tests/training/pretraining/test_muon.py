import pytest
import torch

from dualread.training.pretraining.muon import Muon


def drawn(seed, shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def updates(optimizer_class, shape, **settings):
    """Return the change of a matrix in each of five steps, with gradients that resemble one another."""
    matrix = torch.nn.Parameter(drawn(0, shape))
    optimizer = optimizer_class([{"params": [matrix], "lr": 0.02, "momentum": 0.8, "weight_decay": 0.3}], **settings)
    changes = []
    for step in range(5):
        before = matrix.detach().clone()
        matrix.grad = drawn(1, shape) + drawn(2 + step, shape) / 2
        optimizer.param_groups[0]["lr"] *= 0.9
        optimizer.step()
        changes.append(matrix.detach() - before)
    return torch.stack(changes)


@pytest.mark.parametrize("shape", [(16, 48), (48, 16), (32, 32)])
def test_it_is_torchs_muon_without_the_rounding_of_bfloat16(shape):
    ours = updates(Muon, shape, defaults={})
    torchs = updates(torch.optim.Muon, shape, adjust_lr_fn="match_rms_adamw")
    assert (ours - torchs).norm() < 0.02 * torchs.norm()
    # The bound can tell updates apart: those of one step and of the next differ by more.
    assert (ours[1:] - torchs[:-1]).norm() > 0.1 * torchs.norm()


def test_a_matrix_becomes_nearly_orthogonal():
    matrix = torch.nn.Parameter(torch.zeros(16, 48))
    matrix.grad = drawn(1, (16, 48))
    Muon([{"params": [matrix], "lr": 1.0, "momentum": 0.8, "weight_decay": 0.0}], {}).step()
    values = torch.linalg.svdvals(matrix.detach()) / (0.2 * 48**0.5)  # the scale of an update
    assert 0.6 < values.min() < values.max() < 1.25


@pytest.mark.parametrize("gradient", [None, torch.zeros(3, 4)])
def test_a_matrix_with_no_gradient_or_one_of_zeros_stays(gradient):
    unused, used = (torch.nn.Parameter(torch.ones(3, 4)) for _ in range(2))
    unused.grad, used.grad = gradient, torch.ones(3, 4)
    Muon([{"params": [unused, used], "lr": 0.1, "momentum": 0.8, "weight_decay": 0.0}], {}).step()
    assert torch.equal(unused, torch.ones(3, 4))
    assert not torch.equal(used, torch.ones(3, 4))
