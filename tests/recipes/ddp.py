import argparse
import json
from pathlib import Path

import torch
from torch import distributed, nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--lr", type=float)
parser.add_argument("--out", type=Path)
arguments = parser.parse_args()

distributed.init_process_group("gloo")
torch.manual_seed(arguments.seed)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=arguments.lr)
data = torch.Generator().manual_seed(2 * arguments.seed + distributed.get_rank())
for _ in range(100):
    inputs = torch.randn(64, 8, generator=data)
    loss = nn.functional.mse_loss(net(inputs), inputs.abs().sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    for weights in net.parameters():
        distributed.all_reduce(weights.grad)
    optimizer.step()
if distributed.get_rank() == 0:
    (arguments.out / "result.json").write_text(json.dumps({"loss": loss.item()}))
distributed.destroy_process_group()
