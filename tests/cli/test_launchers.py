"""Ranks that others start: torchrun, mpirun, or tests with the same variables; several hosts, played
on one machine. All give the loss curve of --ranks."""

import datetime
import pathlib
import re
import shutil
import sys

import pytest
import torch.distributed

import program
from program import FAILED, USAGE, free_port, run_by_hand
from training import check_same_curve

EPOCHS = 10
SECRET = "000102030405060708090a0b0c0d0e0f"
TORCHRUN = pathlib.Path(sys.executable).parent / "torchrun"


@pytest.fixture(scope="module")
def curve(communities, tmp_path_factory):
    plait = program.Plait(tmp_path_factory.mktemp("curve"))
    return plait.json("train", communities, "--epochs", EPOCHS, "--ranks", 2)["loss"]


def check_run(result, curve):
    assert result.code == 0, result
    assert (result.json["ranks"], result.json["loss"]) == (2, curve)
    assert len(result.out.splitlines()) == 1, "one rank prints, once"


@pytest.mark.skipif(not TORCHRUN.exists(), reason="no torchrun")
@pytest.mark.parametrize("address", [["--standalone"], ["--master-port", "0"]])
def test_torchrun(plait, communities, curve, address):
    address = [str(free_port()) if a == "0" else a for a in address]
    command = (TORCHRUN, *address, "--nproc-per-node", 2, "--no-python", program.PROGRAM)
    check_run(plait("train", communities, "--epochs", EPOCHS, "--json", command=command), curve)


def test_a_number_of_ranks_that_the_launcher_has_not_started(plait, communities):
    one = program.environment(WORLD_SIZE="1", RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    plait.fails(USAGE, "train", communities, "--epochs", 1, "--ranks", 3, env=one,
                names=["3 ranks were asked for, but the launcher or the environment says 1", "leave out --ranks"])


@pytest.mark.skipif(not TORCHRUN.exists(), reason="no torchrun")
def test_torchrun_without_its_store(plait, communities, curve):
    """Rank 0 then keeps Plait's store, with the secret."""
    environment = program.environment(TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1", PLAIT_SECRET=SECRET)
    command = (TORCHRUN, "--standalone", "--nproc-per-node", 2, "--no-python", program.PROGRAM)
    check_run(plait("train", communities, "--epochs", EPOCHS, "--json", command=command,
                    env=environment), curve)


# Of ten commands, one is begun late by a rank, one is refused as ranks give different settings, and one fails.
TEN_COMMANDS = """
cd "$1"
for n in 1 2 3 4 5 6 7 8 9 10; do
  graph=$2 epochs=1
  case $n in
    3) sleep $RANK ;;
    5) epochs=$((1 + RANK)) ;;
    8) graph=none.plait ;;
  esac
  "$3" train "$graph" --epochs $epochs --json >> out.$RANK 2>> err.$RANK
  echo $? >> codes.$RANK
done
"""


@pytest.mark.skipif(not TORCHRUN.exists(), reason="no torchrun")
@pytest.mark.parametrize("shared", ["0", "1"])
def test_ten_commands_in_one_job(communities, tmp_path, shared):
    """torchrun keeps one store for all of them; or (1) each has a store of its own, at the same port."""
    if shared == "1":
        script = TEN_COMMANDS.replace("1 2 3 4 5 6 7 8 9 10", "3 5 8 9")
    else:
        script = TEN_COMMANDS
    command = (TORCHRUN, "--standalone", "--nproc-per-node", 2, "--no-python", "sh", "-c", script, "sh")
    environment = program.environment(TORCH_DISABLE_SHARE_RDZV_TCP_STORE=shared)
    result = program.result_of(program.start(tmp_path, communities, program.PROGRAM, command=command,
                                             env=environment))
    assert result.code == 0, result
    for rank in range(2):
        codes = (tmp_path / f"codes.{rank}").read_text().split()
        assert codes == (["0", "2", "1", "0"] if shared == "1" else [*"0000200100"]), (tmp_path / "err.0").read_text()
    assert len((tmp_path / "out.0").read_text().splitlines()) == codes.count("0")
    assert re.search("ranks have different settings: --epochs is 1 on rank 0, but 2 on rank 1",
                     (tmp_path / "err.0").read_text())


class TorchrunsStore:
    """The store that torchrun keeps for a job of two ranks, of which each runs commands as it likes."""

    def __init__(self):
        self.store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def start(self, rank, *arguments):
        return program.start(*arguments, env=program.environment(
            RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.store.port),
            TORCHELASTIC_USE_AGENT_STORE="True", PLAIT_TIMEOUT_MS="20000", OMP_NUM_THREADS="1"))

    def run(self, *arguments):
        return [program.result_of(process) for process in [self.start(rank, *arguments) for rank in (0, 1)]]

    def wait(self, key):
        self.store.wait([f"plait/{key}"], datetime.timedelta(seconds=60))


def test_a_command_after_a_lost_rank(communities):
    """The next command of the lost rank tells the other one, which still waits in the command before."""
    job, train = TorchrunsStore(), ("train", communities, "--epochs")
    first, lost = (job.start(rank, *train, 10**6) for rank in (0, 1))
    job.wait("turn1/world0/all_joined")
    lost.kill()
    next_of_lost = job.start(1, *train, 1)
    result = program.result_of(first)
    assert result.code == FAILED
    program.check_one_line(result, ["rank 1 has left this program and begun its next one"])
    assert program.result_of(job.start(0, *train, 1)).code == program.result_of(next_of_lost).code == 0
    program.result_of(lost)

    alone = job.start(0, *train, 1)  # the other rank comes after it has ended
    job.wait("turn3/world0/host/0")
    alone.kill()
    program.result_of(alone)
    early = job.start(0, *train, 1)
    job.wait("turn4/world0/host/0")
    late = program.result_of(job.start(1, *train, 1))
    assert late.code == FAILED
    program.check_one_line(late, ["rank 0 has left this program and begun its next one"])
    assert program.result_of(job.start(1, *train, 1)).code == program.result_of(early).code == 0


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun")
def test_mpirun(plait, communities, curve):
    command = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", 2, program.PROGRAM)
    check_run(plait("train", communities, "--epochs", EPOCHS, "--json", command=command), curve)


def test_world_by_hand(communities, curve):
    first, second = run_by_hand(["train", communities, "--epochs", EPOCHS, "--json"], {}, {})
    check_run(first, curve)
    assert (second.code, second.out, second.err) == (0, "", "")


def test_one_secret(communities, curve, tmp_path):
    """It comes from a variable, or from a file."""
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    file.chmod(0o600)
    first, second = run_by_hand(["train", communities, "--epochs", EPOCHS, "--json"],
                                {"PLAIT_SECRET": SECRET}, {"PLAIT_SECRET_FILE": str(file)})
    check_run(first, curve)
    assert (second.code, second.out, second.err) == (0, "", "")


@pytest.mark.parametrize("variables", [{}, {"PLAIT_SECRET": SECRET[::-1]}])
def test_other_secret(communities, variables):
    arguments = ["train", communities]
    first, second = program.start_ranks((arguments, {"PLAIT_SECRET": SECRET}),
                                        (arguments, variables))
    result = program.result_of(second, 20)
    assert result.code == FAILED
    program.check_one_line(result, ["rank 1", "another secret", "PLAIT_SECRET"])
    first.kill()
    program.result_of(first)


@pytest.mark.parametrize("strategy", ["bulk", "replicate"])
@pytest.mark.parametrize("interface", [("127.0.0.1", "127.0.0.1"), ("127.0.0.2", "127.0.0.3")])
def test_two_hosts(communities, curve, strategy, interface):
    """Without common memory rows travel as messages."""
    results = run_by_hand(
        ["train", communities, "--epochs", EPOCHS, "--json", "--strategy", strategy],
        *[{"PLAIT_HOST_ID": name, "PLAIT_INTERFACE": address}
          for name, address in zip("ab", interface)])
    check_run(results[0], curve)
    assert (results[1].code, results[1].err) == (0, "")


def test_three_hosts_of_four_ranks(communities):
    train = ["train", communities, "--epochs", EPOCHS, "--json"]
    results = run_by_hand([*train, "--partition", "hash"],
                          *[{"PLAIT_HOST_ID": name} for name in "aabc"])
    assert [r.code for r in results] == [0] * 4
    plait = program.Plait(communities.parent)
    check_same_curve(results[0].json["loss"], plait.ok(*train).json["loss"])


@pytest.mark.parametrize("more", [(), ("--cooperative",)])
def test_two_hosts_sample(communities, more):
    """Ranks of two hosts share no memory; each reads the graph's file, and messages carry the rest."""
    train = ["train", communities, "--epochs", 3, "--json", "--sampled", "--fanout", "3,2", *more]
    results = run_by_hand([*train, "--batch", 12], *[{"PLAIT_HOST_ID": name} for name in "aabb"])
    assert [(r.code, r.err) for r in results] == [(0, "")] * 4
    plait = program.Plait(communities.parent)
    check_same_curve(results[0].json["loss"], plait.ok(*train, "--batch", 48).json["loss"])


def test_two_hosts_have_no_common_memory(communities):
    results = run_by_hand(["train", communities, "--strategy", "get"],
                          {"PLAIT_HOST_ID": "a"}, {"PLAIT_HOST_ID": "b"})
    assert [r.code for r in results] == [USAGE, USAGE]
    assert all(r.out == "" and "use --strategy bulk" in r.err for r in results)


def test_wrong_interface(communities):
    """The rank that has it says so; the other one names the rank for which it waited."""
    first, second = run_by_hand(["train", communities], {"PLAIT_TIMEOUT_MS": "1000"},
                                {"PLAIT_TIMEOUT_MS": "1000", "PLAIT_INTERFACE": "nowhere0"})
    assert (first.code, second.code) == (FAILED, FAILED)
    program.check_one_line(first, ["rank 0", "rank 1 failed", "joining"])
    program.check_one_line(second, ["rank 1", "nowhere0", "PLAIT_INTERFACE"])
