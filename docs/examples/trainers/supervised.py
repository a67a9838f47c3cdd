"""Supervised training in plain torch: a small network learns the sign of a product, at one learning rate or another."""

import torch
from torch import nn

import esper_ab


class Settings(esper_ab.TrainerSettings):
    """What groups may differ in: `--group fast:trainer.lr=0.1`."""

    lr: float = 0.01
    width: int = 32
    steps: int = 200  # of the optimiser, between two points


def draw(seed: int, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(samples, 2, generator=torch.Generator().manual_seed(seed)) * 2 - 1  # [samples, 2]
    return x, (x[:, 0] * x[:, 1] > 0).float()


def train(run):
    settings = run.settings
    torch.manual_seed(run.seed("weights"))
    net = nn.Sequential(nn.Linear(2, settings.width), nn.Tanh(), nn.Linear(settings.width, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=settings.lr, momentum=0.9)
    if run.state is not None:
        net.load_state_dict(run.state["net"])
        optimizer.load_state_dict(run.state["optimizer"])
    for point in range(run.point, run.points):
        for step in range(settings.steps):
            x, y = draw(run.seed("batch", point, step), 32)
            loss = nn.functional.binary_cross_entropy_with_logits(net(x)[:, 0], y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        run.alive(settings.steps)
        yield run.Point(
            {"error": error(net, run.seed("validation"), 500), "loss": loss},
            state={"net": net.state_dict(), "optimizer": optimizer.state_dict()},
        )


def evaluate(run, state):
    net = nn.Sequential(nn.Linear(2, run.settings.width), nn.Tanh(), nn.Linear(run.settings.width, 1))
    net.load_state_dict(state["net"])
    return error(net, run.seed("test"), 5000)


def error(net: nn.Module, seed: int, samples: int) -> float:
    """Return the share of wrong signs, in percent."""
    x, y = draw(seed, samples)
    with torch.no_grad():
        return 100.0 * float(((net(x)[:, 0] > 0) != (y > 0)).float().mean())
