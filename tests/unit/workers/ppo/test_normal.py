"""Normal distributions of continuous decisions, against scipy's."""

import numpy as np
import pytest
import torch
from scipy import stats

from workers.ppo import normal

MEANS, LOG_STDS = np.array([[0.5, -2.0], [1.0, 3.0]]), np.array([[0.0, -1.0], [0.7, 0.2]])
PARAMETERS = torch.from_numpy(np.stack((MEANS, LOG_STDS), -1))
NORMALS = stats.norm(MEANS, np.exp(LOG_STDS))


def test_densities_and_entropies_are_those_of_the_normal_distribution() -> None:
    actions = np.array([[0.0, -1.0], [5.0, 2.5]])
    found = normal.joint_log_prob(PARAMETERS, torch.from_numpy(actions))
    assert found.tolist() == pytest.approx(NORMALS.logpdf(actions).sum(-1).tolist())
    assert normal.entropies(PARAMETERS).flatten().tolist() == pytest.approx(NORMALS.entropy().flatten().tolist())


@pytest.mark.parametrize("uniform", [0.0, 1e-12, 0.3, 0.5, 1.0 - 2.0**-53])
def test_samples_are_quantiles_and_finite_at_every_uniform_number(uniform: float) -> None:
    found = normal.sample(PARAMETERS, np.full((2, 2), uniform)).numpy()
    assert np.isfinite(found).all()
    assert found == pytest.approx(NORMALS.ppf(max(uniform, 2.0**-54)))
