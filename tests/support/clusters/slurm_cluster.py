"""A real Slurm of three nodes on this machine: munged, slurmctld and three slurmd on ports of their own, as root.

The nodes n1, n2 and n3 share one kernel, one file system and the address 127.0.0.1. The partition "high" preempts
"main" by requeueing. No process outlives `SlurmCluster.close`, and only /run/munge changes outside `folder`.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil

NODES = ("n1", "n2", "n3")
CPUS = 4  # that each node reports
PATIENCE_S = 60.0
_POLL_S = 0.05
_LEAVE_S = 5.0
_NEEDED = ("munged", "slurmctld", "slurmd", "srun", "sbatch")
_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={socket}
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,requeue_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=30
InactiveLimit=0
KillWait=5
MinJobAge=300
"""
_NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=8000 State=UNKNOWN\n"
_PARTITIONS = """\
PartitionName=main Nodes=n1,n2,n3 Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=high Nodes=n1,n2,n3 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def missing() -> str:
    """Return why the cluster cannot run here, or ""."""
    if os.geteuid() != 0:
        return "the daemons of Slurm need root"
    missing_programs = [name for name in _NEEDED if shutil.which(name) is None]
    return f"not installed: {', '.join(missing_programs)}; scripts/test_cluster installs it" if missing_programs else ""


class SlurmCluster:
    """A Slurm cluster that runs from construction to `close`; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        try:
            self._configure()
            self._start_munge()
            self._start("slurmctld", "slurmctld", "-D")
            for name in NODES:
                self.start_node(name)
            self.wait(lambda: self.output("sinfo", "-h", "-N", "-p", "main", "-o", "%t").split() == ["idle"] * 3)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SlurmCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _configure(self) -> None:
        host = socket.gethostname()
        ports = _free_ports(1 + len(NODES))
        (self.folder / "state").mkdir()
        text = _CONF.format(folder=self.folder, host=host, controller=ports[0], socket=self.folder / "munge.socket")
        for name, port in zip(NODES, ports[1:], strict=True):
            (self.folder / f"spool-{name}").mkdir()
            text += _NODE.format(name=name, host=host, port=port, cpus=CPUS)
        (self.folder / "slurm.conf").write_text(text + _PARTITIONS)

    def _start_munge(self) -> None:
        """Start munged as root with a key in the cluster's folder."""
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self._start(
            "munged",
            "munged",
            "--foreground",
            "--force",
            f"--key-file={key}",
            f"--socket={self.folder}/munge.socket",
            f"--pid-file={self.folder}/munged.pid",
            f"--seed-file={self.folder}/munged.seed",
            f"--log-file={self.folder}/munged.log",
        )
        self.wait((self.folder / "munge.socket").exists)

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def start_node(self, name: str) -> None:
        self._start(name, "slurmd", "-D", "-N", name)

    def run(self, *command: str, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]

    def output(self, *command: str) -> str:
        return self.run(*command).stdout

    def allocate(self, *options: str) -> str:
        """Allocate nodes and return the number of the job once they are ready."""
        process = self.run("salloc", "--no-shell", *options)
        assert process.returncode == 0, process.stderr
        return re.findall(r"\d+", process.stderr)[0]

    def of_batch(self, job: str) -> dict[str, str]:
        """Return the variables that Slurm sets for the batch script of a job."""
        fields = dict(re.findall(r"(\w+)=(\S+)", self.output("scontrol", "-o", "show", "job", job)))
        count = int(fields["NumNodes"])
        return {
            "SLURM_CONF": self.environment["SLURM_CONF"],
            "SLURM_JOB_ID": job,
            "SLURM_JOB_NODELIST": fields["NodeList"],
            "SLURM_JOB_CPUS_PER_NODE": f"{int(fields['NumCPUs']) // count}(x{count})",
            "SLURMD_NODENAME": "n1",
        }

    def submit(self, script: Path, *options: str) -> str:
        """Submit a batch script and return the number of its job."""
        process = self.run("sbatch", "--parsable", *options, str(script))
        assert process.returncode == 0, process.stderr
        return process.stdout.strip()

    def state(self, job: str) -> str:
        """Return the state of a job, such as PENDING or RUNNING; "" if there is none."""
        fields = self.output("scontrol", "-o", "show", "job", job)
        return next((field.partition("=")[2] for field in fields.split() if field.startswith("JobState=")), "")

    def wait(self, condition, patience_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + patience_s
        while not condition():
            assert time.monotonic() < deadline, f"not within {patience_s:.0f} s; logs are in {self.folder}"
            time.sleep(_POLL_S)

    def close(self) -> None:
        """Cancel every job and stop the nodes, then the controller and munge."""
        if "slurmctld" in self._daemons:
            self.run("scancel", "--full", "--signal=KILL", "--user=root")
            self.run("scancel", "--user=root")
        for daemon in reversed(list(self._daemons.values())):
            children = psutil.Process(daemon.pid).children(recursive=True)
            daemon.terminate()
            try:
                daemon.wait(_LEAVE_S)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
        self._daemons.clear()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(listener.getsockname()[1]) for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports
