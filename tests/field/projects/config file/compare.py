"""The same experiment, declared and run in Python."""

from esper_ab import create_experiment, run_ab_test

experiment = (
    create_experiment("rates")
    .add_variant("slow", **{"trainer__optimizer.lr": 0.1})
    .add_variant("fast", **{"trainer__optimizer.lr": 0.9})
    .set_base_config(
        trainer="python train.py configs/base.toml run.seed={seed} optimizer.lr={optimizer.lr}",
        outcome="eval.score",
        outcome_better="higher",
        margin=1.0,
    )
    .build()
)

if __name__ == "__main__":
    print(run_ab_test(experiment, verbose=False))
