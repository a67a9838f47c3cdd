# my_experiment.py
from esper_ab import create_experiment


def create_my_experiment():
    return (
        create_experiment(name="my_experiment", description="My A/B test experiment")
        .add_variant(name="variant_a", description="First variant", ppo__lr=0.001, run="variant_a")
        .add_variant(name="variant_b", description="Second variant", ppo__lr=0.0001, run="variant_b")
        .set_runs_per_variant(5)
        .set_base_config(task="synthetic", episodes=1, steps=3, n_envs=2)
        .build()
    )


# Alternative: define as a variable
experiment = create_my_experiment()
