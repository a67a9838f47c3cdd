"""Adam (Kingma & Ba 2015, arXiv:1412.6980), as torch computes it, without torch's optimiser class.

Creating a torch.optim.Optimizer imports torch's unused compiler, which takes a second of every worker's start. This
calls the same fused kernel on the same numbers, and its state has the layout of torch.optim.Adam's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

_BETAS = (0.9, 0.999)
_KEPT = ("step", "exp_avg", "exp_avg_sq")  # per parameter: updates so far, running means of gradient and its square


class Adam:
    """Optimiser of `parameters` from their gradients."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, eps: float) -> None:
        self._parameters = list(parameters)
        self.lr = lr  # of the next steps; may be set
        self._eps = eps
        self._state: list[dict[str, Tensor]] = []  # per parameter; empty before the first step

    def zero_grad(self) -> None:
        """Clear all gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Perform one update; every parameter must have a gradient."""
        gradients = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        assert len(gradients) == len(self._parameters), "a parameter without a gradient"
        if not self._state:
            self._state = [
                {
                    "step": torch.zeros((), dtype=torch.float32),
                    "exp_avg": torch.zeros_like(parameter), "exp_avg_sq": torch.zeros_like(parameter),
                }
                for parameter in self._parameters
            ]
        steps, means, squares = ([state[name] for state in self._state] for name in _KEPT)
        adam(
            list[Tensor](self._parameters), gradients, means, squares, [], steps, fused=True, amsgrad=False,
            beta1=_BETAS[0], beta2=_BETAS[1], lr=self.lr, weight_decay=0.0, eps=self._eps, maximize=False,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return copies of update counts and running means, laid out as `state` in torch.optim.Adam's state_dict."""
        return {"state": {i: {k: v.clone() for k, v in state.items()} for i, state in enumerate(self._state)}}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state`, of this class or of torch.optim.Adam; LookupError for another number of parameters."""
        found = state["state"]
        if found and len(found) != len(self._parameters):
            raise LookupError(f"a state of {len(found)} parameters for {len(self._parameters)}")
        self._state = [{name: found[i][name].clone() for name in _KEPT} for i in range(len(found))]
