import json
from pathlib import Path

import hydra
import numpy as np
from hydra.core.hydra_config import HydraConfig


@hydra.main(config_path="conf", config_name="config", version_base=None)
def main(config):
    random = np.random.default_rng(config.seed)
    inputs, truth = random.normal(size=(200, 5)), random.normal(size=5)
    targets, weights = inputs @ truth + random.normal(size=200), np.zeros(5)
    for row in random.integers(200, size=config.algo.steps):
        weights += config.algo.lr * (targets[row] - inputs[row] @ weights) * inputs[row]
    folder = Path(HydraConfig.get().runtime.output_dir)
    (folder / "metrics.json").write_text(json.dumps({"error": np.linalg.norm(weights - truth)}))


main()
