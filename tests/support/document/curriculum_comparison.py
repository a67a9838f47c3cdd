# curriculum_comparison.py
from esper_ab import create_experiment


def create_curriculum_comparison_experiment():
    return (
        create_experiment(
            name="curriculum_comparison", description="Learning Progress vs Prioritized Regressed Curriculum"
        )
        .add_variant(
            name="learning_progress",
            description="Learning progress curriculum for navigation tasks",
            reward="shaped",
            run="curriculum_lp",
        )
        .add_variant(
            name="prioritized_regressed",
            description="Prioritized regressed curriculum for navigation tasks",
            reward="simplified",
            run="curriculum_pr",
        )
        .set_runs_per_variant(5)
        .set_base_config(task="synthetic", episodes=1, steps=3, n_envs=2, eval_episodes=2)
        .set_wandb_config(entity="metta-research")
        .build()
    )


# Run with: esper-ab launch curriculum_comparison.py
