from my_experiment import create_my_experiment

from esper_ab import run_ab_test

experiment = create_my_experiment()
results = run_ab_test(experiment, output_dir="custom_results", parallel_runs=True, max_parallel_runs=8)

# Access results
for variant_name, runs in results.items():
    successful_runs = [r for r in runs if r["success"]]
    print(f"{variant_name}: {len(successful_runs)}/{len(runs)} successful")  # noqa: T201
