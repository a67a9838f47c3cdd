-- Views over a journal; docs/sql.md has their columns. What is there before (query/sql.py): the table
-- `other_lines` (n, t, kind, event) of all lines that are no episodes, and the macro `episode_lines(type)` (n, t, record),
-- which reads those of episodes from the file as they are asked for, and of each record the fields of that type only.

CREATE VIEW journal AS
SELECT * FROM other_lines
UNION ALL
SELECT n, t, 'episode' AS kind, json_object('kind', 'episode', 'record', record) AS event FROM episode_lines('JSON');

CREATE VIEW plan_runs AS -- of the plan and its extensions
SELECT unnest(from_json(CASE kind WHEN 'experiment_started' THEN event -> '$.plan.blocks[*].runs[*]'
                                  ELSE event -> '$.extension.blocks[*].runs[*]' END, '[{
         "ref": {"name": "VARCHAR", "group_id": "VARCHAR", "replicate": "INTEGER", "reward_mode": "VARCHAR",
                 "controller": "VARCHAR", "device": "VARCHAR"},
         "task": "VARCHAR", "n_envs": "INTEGER", "episodes": "INTEGER", "steps": "INTEGER",
         "rng_seed": "BIGINT", "policy_file": "VARCHAR"}]')) AS spec
FROM other_lines
WHERE kind IN ('experiment_started', 'plan_extended');

CREATE VIEW episodes AS
SELECT
    r.run.name AS run, r.run.group_id AS group_id, r.run.replicate AS replicate, r.run.reward_mode AS reward_mode,
    r.run.controller AS controller, r.run.device AS device, r.episode AS episode, t AS recorded_at,
    list_avg([e.outcome for e in r.envs]) AS outcome{second},
    list_avg([e.reward_sum for e in r.envs]) AS reward_sum,
    len([e for e in r.envs if e.failed]) AS failed{means},
    r.timing.total_s AS total_s, r.timing.train_s AS train_s, r.timing.validate_s AS validate_s,
    r.timing.decide_s AS decide_s, r.timing.update_s AS update_s,
    r.digest AS digest
FROM (SELECT t, record AS r FROM episode_lines('STRUCT(
    run STRUCT(name VARCHAR, group_id VARCHAR, replicate INTEGER, reward_mode VARCHAR, controller VARCHAR,
               device VARCHAR),
    episode INTEGER,
    envs STRUCT(outcome DOUBLE, reward_sum DOUBLE, failed BOOLEAN{fields})[],
    timing STRUCT(total_s DOUBLE, train_s DOUBLE, validate_s DOUBLE, decide_s DOUBLE, update_s DOUBLE),
    digest VARCHAR)'));

CREATE VIEW env_episodes AS
SELECT
    r.run.name AS run, r.run.group_id AS group_id, r.run.replicate AS replicate, r.run.reward_mode AS reward_mode,
    r.run.controller AS controller, r.episode AS episode,
    unnest(r.envs, recursive := true)
FROM (SELECT record AS r FROM episode_lines('STRUCT(
    run STRUCT(name VARCHAR, group_id VARCHAR, replicate INTEGER, reward_mode VARCHAR, controller VARCHAR),
    episode INTEGER,
    envs STRUCT(env INTEGER, device VARCHAR, steps INTEGER, outcome DOUBLE, reward_sum DOUBLE,
                failed BOOLEAN{fields})[])'));

CREATE VIEW ppo_updates AS
SELECT
    r.run.name AS run, r.run.group_id AS group_id, r.run.replicate AS replicate, r.run.reward_mode AS reward_mode,
    r.run.device AS device, r.episode AS episode,
    unnest(r.ppo)
FROM (SELECT record AS r FROM episode_lines('STRUCT(
    run STRUCT(name VARCHAR, group_id VARCHAR, replicate INTEGER, reward_mode VARCHAR, device VARCHAR),
    episode INTEGER,
    ppo STRUCT(policy_loss DOUBLE, value_loss DOUBLE, entropy DOUBLE, op_entropy DOUBLE, approx_kl DOUBLE,
               clip_fraction DOUBLE, explained_variance DOUBLE, grad_norm DOUBLE, first_ratio_error DOUBLE,
               ratio_max DOUBLE, epochs_done INTEGER, stopped_by_kl BOOLEAN, advantage_std DOUBLE,
               return_mean DOUBLE))'))
WHERE r.ppo IS NOT NULL;

CREATE VIEW seed_events AS
SELECT
    r.run.name AS run, r.run.group_id AS group_id, r.run.replicate AS replicate, r.run.reward_mode AS reward_mode,
    r.episode AS episode,
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
FROM (SELECT record AS r, unnest(record.seed_events) AS s FROM episode_lines('STRUCT(
    run STRUCT(name VARCHAR, group_id VARCHAR, replicate INTEGER, reward_mode VARCHAR),
    episode INTEGER,
    seed_events JSON[])'));

CREATE VIEW evaluations AS
WITH unnested AS (
    SELECT
        event ->> '$.record.run.name' AS run,
        event ->> '$.record.run.group_id' AS group_id,
        CAST(event ->> '$.record.run.replicate' AS INTEGER) AS replicate,
        event ->> '$.record.run.reward_mode' AS reward_mode,
        event ->> '$.record.run.controller' AS controller,
        event ->> '$.record.policy_file' AS policy_file,
        unnest(from_json(event -> '$.record.episodes', '[{
            "episode": "INTEGER", "actions": "VARCHAR", "rewards": "MAP(VARCHAR, DOUBLE)",
            "outcome": {"env": "INTEGER", "device": "VARCHAR", "steps": "INTEGER", "outcome": "DOUBLE",
                        "failed": "BOOLEAN"{keys}}}]')) AS e
    FROM other_lines
    WHERE kind = 'evaluation'
)
SELECT run, group_id, replicate, reward_mode, controller, e.episode AS episode, e.actions AS actions,
       unnest(e.outcome, recursive := true), e.rewards AS rewards, policy_file
FROM unnested;

CREATE VIEW incidents AS
SELECT
    t AS recorded_at,
    event ->> '$.category' AS category,
    nullif(event ->> '$.run_name', '') AS run,
    CAST(event ->> '$.episode' AS INTEGER) AS episode,
    event ->> '$.detail' AS detail
FROM other_lines
WHERE kind = 'incident';

-- What training left of each run: its episodes, and the outcomes made of them.
CREATE VIEW curves AS
SELECT e.run AS run, count(*) AS episodes, avg(e.outcome) AS curve_mean,
    avg(e.outcome) FILTER (e.episode >= p.spec.episodes - ceil(p.spec.episodes / 10)) AS last_tenth,
    avg(e.outcome) FILTER (e.episode >= p.spec.episodes - ceil(p.spec.episodes / 3)) AS last_third
FROM plan_runs AS p JOIN (
    SELECT r.run.name AS run, r.episode AS episode, list_avg([e.outcome for e in r.envs]) AS outcome
    FROM (SELECT record AS r FROM episode_lines(
        'STRUCT(run STRUCT(name VARCHAR), episode INTEGER, envs STRUCT(outcome DOUBLE)[])'))
) AS e ON e.run = p.spec.ref.name
GROUP BY e.run;

CREATE VIEW runs AS
SELECT
    p.spec.ref.name AS run, p.spec.ref.group_id AS group_id, p.spec.ref.replicate AS replicate,
    p.spec.ref.reward_mode AS reward_mode, p.spec.ref.controller AS controller, p.spec.ref.device AS device,
    p.spec.task AS task, p.spec.n_envs AS n_envs, p.spec.episodes AS planned_episodes,
    p.spec.steps AS steps, p.spec.rng_seed AS rng_seed, p.spec.policy_file AS policy_file,
    (SELECT arg_min(CAST(event ->> '$.warm_up_s' AS DOUBLE), n) FROM other_lines -- of its first start
     WHERE kind = 'run_ready' AND event ->> '$.run.name' = p.spec.ref.name) AS warm_up_s,
    coalesce(c.episodes, 0) AS recorded_episodes,
    CASE WHEN EXISTS (FROM other_lines WHERE kind = 'evaluation' AND event ->> '$.record.run.name' = p.spec.ref.name)
        AND NOT EXISTS (FROM other_lines WHERE kind = 'incident' AND event ->> '$.run_name' = p.spec.ref.name
                        AND event ->> '$.category' IN ('dropped_pair', 'cancelled')) -- given up
    THEN CASE (SELECT any_value(event ->> '$.plan.design.outcome_over') FROM other_lines WHERE kind = 'experiment_started')
        WHEN 'evaluation' THEN e.sampled
        WHEN 'last-tenth' THEN CASE WHEN c.episodes >= p.spec.episodes THEN c.last_tenth END
        WHEN 'last-third' THEN CASE WHEN c.episodes >= p.spec.episodes THEN c.last_third END
        WHEN 'curve-mean' THEN CASE WHEN c.episodes >= p.spec.episodes THEN c.curve_mean END
    END END AS outcome,
    e.sampled AS evaluated, e.greedy AS greedy
FROM plan_runs AS p
LEFT JOIN curves AS c ON c.run = p.spec.ref.name
LEFT JOIN (
    SELECT run, avg(outcome) FILTER (actions = 'sampled') AS sampled,
        avg(outcome) FILTER (actions = 'greedy') AS greedy
    FROM evaluations GROUP BY run
) AS e ON e.run = p.spec.ref.name;
