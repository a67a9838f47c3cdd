"""Workers and coordinators are killed at seeded points, from inside and outside: no record is lost."""

import pytest
from support.coordinators.planted_death import Death
from support.worlds.fault_world import LIVES, PLAN, description, live, make_world, peaceful

from esper_ab.analysis.result_hash import result_hash
from esper_ab.control import experiment_run
from esper_ab.journal.events import Incident
from esper_ab.journal.fold import fold
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from esper_ab.launchers.inline import InlineLauncher

RNG_SEEDS = (1, 4, 5)  # they cover chunks of large messages, kills from outside, three coordinators


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The result hash of the experiment without faults."""
    experiment_dir = tmp_path_factory.mktemp("undisturbed")
    experiment_run.run(PLAN, experiment_dir, InlineLauncher("support.workers.fake_worker:main_in_thread"), ())
    return result_hash(fold(read(experiment_dir / JOURNAL_NAME)))


@pytest.mark.parametrize(
    "rng_seed",
    [
        *RNG_SEEDS,
        *(pytest.param(rng_seed, marks=pytest.mark.slow) for rng_seed in range(100, 160)),
    ],
)
def test_random_faults_do_not_change_the_result_of_an_experiment(rng_seed, undisturbed, tmp_path):
    outcome = live(make_world(rng_seed), tmp_path / "run", undisturbed)
    assert not outcome.problem, description(outcome)
    assert outcome.faults >= 2 or rng_seed not in RNG_SEEDS, description(outcome)
    assert outcome.lives <= LIVES + len(outcome.blows)


@pytest.mark.parametrize(
    "cause",
    [
        "SIGSTOP",
        "interpreter locked",
        *(pytest.param(cause, marks=pytest.mark.slow) for cause in ("busy loop", "deadlock")),
    ],
)
def test_a_worker_that_hangs_while_writing_a_checkpoint_is_restarted(cause, undisturbed, tmp_path):
    death = Death(place="checkpoint write", n=3, moment="middle", cause=cause)
    world = peaceful(floor_s=3.0)
    world.deaths["w01/1"] = death
    outcome = live(world, tmp_path / "run", undisturbed)
    assert not outcome.problem, description(outcome)
    assert outcome.planted == [("w01/1", death)]
    (hang,) = [event for event in read(tmp_path / "run" / JOURNAL_NAME) if isinstance(event, Incident)][:1]
    assert hang.category == "hung_worker"
    stacks = (tmp_path / "run" / "logs" / "w01.log").read_text()
    assert ("in _die" in stacks) is (cause != "SIGSTOP"), "a stopped process cannot write its stacks"
