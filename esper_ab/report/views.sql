-- Views over the table `journal` (n, t, kind, event), one row per journal line. Columns are documented in docs/sql.md.

CREATE VIEW plan_runs AS
SELECT unnest(from_json(event -> '$.plan.blocks[*].runs[*]', '[{
         "ref": {"run": "VARCHAR", "group_id": "VARCHAR", "replicate": "INTEGER", "reward_mode": "VARCHAR",
                 "controller": "VARCHAR", "device": "VARCHAR"},
         "block": "INTEGER", "task": "VARCHAR", "n_envs": "INTEGER", "episodes": "INTEGER", "steps": "INTEGER",
         "rng_seed": "BIGINT", "policy_file": "VARCHAR"}]')) AS spec
FROM journal
WHERE kind = 'experiment_started';

CREATE VIEW episode_records AS
SELECT
    t AS recorded_at,
    event ->> '$.record.run.run' AS run,
    event ->> '$.record.run.group_id' AS group_id,
    CAST(event ->> '$.record.run.replicate' AS INTEGER) AS replicate,
    event ->> '$.record.run.reward_mode' AS reward_mode,
    event ->> '$.record.run.controller' AS controller,
    event ->> '$.record.run.device' AS device,
    CAST(event ->> '$.record.episode' AS INTEGER) AS episode,
    event -> '$.record' AS record
FROM journal
WHERE kind = 'episode';

CREATE VIEW env_episodes AS
WITH unnested AS (
    SELECT *, unnest(from_json(record -> '$.envs', '[{
        "env": "INTEGER", "device": "VARCHAR", "steps": "INTEGER", "final_accuracy": "DOUBLE",
        "val_accuracy": "DOUBLE", "best_val_accuracy": "DOUBLE", "val_loss": "DOUBLE", "reward_sum": "DOUBLE",
        "host_params": "BIGINT", "params_added": "BIGINT", "germinated": "INTEGER", "pruned": "INTEGER",
        "fossilized": "INTEGER", "contributing": "INTEGER", "op_counts": ["INTEGER"], "diverged": "BOOLEAN"}]')) AS e
    FROM episode_records
)
SELECT
    run, group_id, replicate, reward_mode, controller, episode,
    e.env AS env, e.device AS device, e.steps AS steps, e.final_accuracy AS final_accuracy,
    e.val_accuracy AS val_accuracy, e.best_val_accuracy AS best_val_accuracy, e.val_loss AS val_loss,
    e.reward_sum AS reward_sum, e.host_params AS host_params, e.params_added AS params_added,
    e.germinated AS germinated, e.pruned AS pruned, e.fossilized AS fossilized, e.contributing AS contributing,
    e.op_counts AS op_counts, e.diverged AS diverged
FROM unnested;

CREATE VIEW episodes AS
SELECT
    r.run, r.group_id, r.replicate, r.reward_mode, r.controller, r.device, r.episode, r.recorded_at,
    avg(e.final_accuracy) AS final_accuracy, avg(e.val_accuracy) AS val_accuracy, avg(e.reward_sum) AS reward_sum,
    avg(e.params_added) AS params_added, avg(e.fossilized) AS fossilized, avg(e.pruned) AS pruned,
    count_if(e.diverged) AS diverged,
    CAST(any_value(r.record ->> '$.timing.total_s') AS DOUBLE) AS total_s,
    CAST(any_value(r.record ->> '$.timing.train_s') AS DOUBLE) AS train_s,
    CAST(any_value(r.record ->> '$.timing.validate_s') AS DOUBLE) AS validate_s,
    CAST(any_value(r.record ->> '$.timing.decide_s') AS DOUBLE) AS decide_s,
    CAST(any_value(r.record ->> '$.timing.update_s') AS DOUBLE) AS update_s,
    any_value(r.record ->> '$.digest') AS digest
FROM episode_records AS r
JOIN env_episodes AS e ON e.run = r.run AND e.episode = r.episode
GROUP BY ALL;

CREATE VIEW ppo_updates AS
WITH updates AS (
    SELECT *, from_json(record -> '$.ppo', '{
        "policy_loss": "DOUBLE", "value_loss": "DOUBLE", "entropy": "DOUBLE", "op_entropy": "DOUBLE",
        "approx_kl": "DOUBLE", "clip_fraction": "DOUBLE", "explained_variance": "DOUBLE", "grad_norm": "DOUBLE",
        "first_ratio_error": "DOUBLE", "ratio_max": "DOUBLE", "epochs_done": "INTEGER", "stopped_by_kl": "BOOLEAN",
        "advantage_std": "DOUBLE", "return_mean": "DOUBLE"}') AS u
    FROM episode_records
    WHERE json_type(record, '$.ppo') = 'OBJECT'
)
SELECT run, group_id, replicate, reward_mode, device, episode, unnest(u) FROM updates;

CREATE VIEW seed_events AS
WITH unnested AS (
    SELECT *, unnest(from_json(record -> '$.seed_events', '["JSON"]')) AS s FROM episode_records
)
SELECT
    run, group_id, replicate, reward_mode, episode,
    CAST(s ->> 0 AS INTEGER) AS env,
    CAST(s ->> 1 AS INTEGER) AS step,
    s ->> 2 AS slot,
    s ->> 3 AS event,
    s ->> 4 AS seed_id,
    s ->> 5 AS blueprint,
    s ->> 6 AS stage,
    CAST(s ->> 7 AS DOUBLE) AS alpha,
    CAST(s ->> 8 AS DOUBLE) AS contribution,
    CAST(s ->> 9 AS BIGINT) AS params
FROM unnested;

CREATE VIEW evaluations AS
WITH unnested AS (
    SELECT
        event ->> '$.record.run.run' AS run,
        event ->> '$.record.run.group_id' AS group_id,
        CAST(event ->> '$.record.run.replicate' AS INTEGER) AS replicate,
        event ->> '$.record.run.reward_mode' AS reward_mode,
        event ->> '$.record.run.controller' AS controller,
        event ->> '$.record.policy_file' AS policy_file,
        unnest(from_json(event -> '$.record.episodes', '[{
            "episode": "INTEGER", "actions": "VARCHAR", "rewards": "MAP(VARCHAR, DOUBLE)",
            "env": {"env": "INTEGER", "device": "VARCHAR", "steps": "INTEGER", "final_accuracy": "DOUBLE",
                    "val_accuracy": "DOUBLE", "val_loss": "DOUBLE", "host_params": "BIGINT", "params_added": "BIGINT",
                    "germinated": "INTEGER", "pruned": "INTEGER", "fossilized": "INTEGER", "contributing": "INTEGER",
                    "diverged": "BOOLEAN"}}]')) AS e
    FROM journal
    WHERE kind = 'evaluation'
)
SELECT run, group_id, replicate, reward_mode, controller, e.episode AS episode, e.actions AS actions,
       unnest(e.env), e.rewards AS rewards, policy_file
FROM unnested;

CREATE VIEW ledger AS
SELECT
    t AS recorded_at,
    event ->> '$.category' AS category,
    nullif(event ->> '$.run', '') AS run,
    CAST(event ->> '$.episode' AS INTEGER) AS episode,
    event ->> '$.detail' AS detail
FROM journal
WHERE kind = 'ledger';

CREATE VIEW runs AS
SELECT
    p.spec.ref.run AS run, p.spec.ref.group_id AS group_id, p.spec.ref.replicate AS replicate,
    p.spec.ref.reward_mode AS reward_mode, p.spec.ref.controller AS controller, p.spec.ref.device AS device,
    p.spec.block AS block, p.spec.task AS task, p.spec.n_envs AS n_envs, p.spec.episodes AS planned_episodes,
    p.spec.steps AS steps, p.spec.rng_seed AS rng_seed, p.spec.policy_file AS policy_file,
    (SELECT CAST(max(event ->> '$.warm_up_s') AS DOUBLE) FROM journal
     WHERE kind = 'run_ready' AND event ->> '$.run.run' = p.spec.ref.run) AS warm_up_s,
    (SELECT count(*) FROM episode_records AS r WHERE r.run = p.spec.ref.run) AS recorded_episodes,
    (SELECT avg(final_accuracy) FROM evaluations AS e
     WHERE e.run = p.spec.ref.run AND e.actions = 'sampled') AS endpoint,
    (SELECT avg(final_accuracy) FROM evaluations AS e
     WHERE e.run = p.spec.ref.run AND e.actions = 'greedy') AS greedy_accuracy
FROM plan_runs AS p;
