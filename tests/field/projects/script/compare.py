"""An experiment declared in Python, beside the trainer."""

from esper_ab import create_experiment

experiment = (
    create_experiment("api")
    .add_variant("slow", trainer__lr=0.1)
    .add_variant("fast", trainer__lr=0.9)
    .set_base_config(trainer="trainer.py", outcome="score", outcome_better="higher", margin=1.0, episodes=1)
    .build()
)
