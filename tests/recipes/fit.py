import argparse

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Fit(lightning.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.lr, self.net = lr, nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))

    def training_step(self, batch, _):
        return nn.functional.mse_loss(self.net(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.log("val_loss", nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--lr", type=float)
arguments = parser.parse_args()

lightning.seed_everything(arguments.seed)
inputs = torch.randn(768, 8)
training, validation = random_split(TensorDataset(inputs, inputs.abs().sum(1, keepdim=True)), [512, 256])
loaders = [DataLoader(training, 32, shuffle=True), DataLoader(validation, 256)]
lightning.Trainer(max_epochs=5, accelerator="cpu", enable_progress_bar=False).fit(Fit(arguments.lr), *loaders)
