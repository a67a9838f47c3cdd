from esper_ab import ABExperiment, ABVariant


class MyCustomExperiment(ABExperiment):
    def __init__(self):
        super().__init__(name="custom_experiment", description="My custom experiment")

        # Add variants
        self.add_variant(ABVariant(name="variant_a", description="First variant", overrides={"ppo__lr": 0.001}))
        self.add_variant(ABVariant(name="variant_b", description="Second variant", overrides={"ppo__lr": 0.0001}))

        # Set configuration
        self.runs_per_variant = 10
        self.base_config = {"task": "synthetic", "episodes": 1, "steps": 3, "n_envs": 2}
