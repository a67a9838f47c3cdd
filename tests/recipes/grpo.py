import argparse

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


def vowels(completions, **_):
    return [sum(text.count(vowel) for vowel in "aeiou") / 8 for text in completions]


parser = argparse.ArgumentParser()
parser.add_argument("--model", default="tiny")
parser.add_argument("--seed", type=int)
parser.add_argument("--lr", type=float)
parser.add_argument("--out")
arguments = parser.parse_args()

short = {"max_steps": 12, "per_device_train_batch_size": 32, "max_completion_length": 8, "use_cpu": True}
log = {"logging_steps": 1, "report_to": "tensorboard"}
config = GRPOConfig(arguments.out, seed=arguments.seed, learning_rate=arguments.lr, **short, **log)
prompts = Dataset.from_dict({"prompt": list("bcdfghjklm") * 8})
GRPOTrainer(arguments.model, vowels, config, train_dataset=prompts).train()
