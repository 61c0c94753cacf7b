from msgspec.structs import replace

from accel_checks.rnk002_shared_device import CHECK
from accel_doctor.evidence import MigDevice
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_rank, gpu_run, gpu_uuid, healthy_gpu, healthy_gpus


def test_two_ranks_on_one_device() -> None:
    ranks = (gpu_rank(0), gpu_rank(1, device="cuda:0", device_uuid=gpu_uuid(0)))
    (finding,) = findings(CHECK, gpu_run(ranks=ranks))
    assert finding.message == "ranks 0 and 1 on ws1 both compute on cuda:0"
    assert finding.ranks == (0, 1)
    assert finding.values == {"ranks_on_device": 2.0, "ranks_on_host": 2.0, "visible": 2.0}
    assert finding.evidence == ("2 ranks on this host, each sees 2 GPUs", f"device {gpu_uuid(0)}")


def test_each_rank_on_its_own() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"


def test_more_ranks_than_devices() -> None:
    ranks = tuple(gpu_rank(i, 4, device="cuda:0", device_uuid=gpu_uuid(0), torch_device_count=1) for i in range(4))
    (finding,) = findings(CHECK, gpu_run(ranks=ranks))
    assert finding.message == "ranks 0, 1, 2 and 3 on ws1 all compute on cuda:0"
    assert finding.fix == "start 1 process on this host: each sees 1 of its GPUs"


def test_a_uuid_with_and_without_prefix_is_one_device() -> None:
    ranks = (gpu_rank(0), gpu_rank(1, device="cuda:0", device_uuid=gpu_uuid(0).removeprefix("GPU-")))
    assert len(findings(CHECK, gpu_run(ranks=ranks))) == 1


def test_one_number_on_two_devices_is_right_where_each_rank_sees_its_own() -> None:
    ranks = tuple(gpu_rank(i, device="cuda:0") for i in range(2))
    assert outcome(CHECK, gpu_run(ranks=ranks)).outcome.value == "passed"
    unnamed = tuple(
        replace(gpu_rank(i, device="cuda:0", device_uuid=None), environment={"CUDA_VISIBLE_DEVICES": str(i)})
        for i in range(2)
    )
    assert outcome(CHECK, gpu_run(ranks=unnamed)).outcome.value == "passed"


def test_without_uuids_host_and_number_tell() -> None:
    shared = tuple(gpu_rank(i, device="cuda:0", device_uuid=None) for i in range(2))
    assert len(findings(CHECK, gpu_run(ranks=shared))) == 1
    apart = (shared[0], replace(shared[1], host="ws2"))
    assert outcome(CHECK, gpu_run(ranks=apart)).outcome.value == "passed"


def test_a_device_without_a_number_is_the_first() -> None:
    ranks = (gpu_rank(0, device="cuda", device_uuid=None), gpu_rank(1, device="cuda:0", device_uuid=None))
    assert len(findings(CHECK, gpu_run(ranks=ranks))) == 1


def test_two_ranks_on_one_mig_instance() -> None:
    instance = MigDevice(uuid="MIG-1b0b7a3c-54a5", gpu_instance=1)
    devices = healthy_gpus(healthy_gpu(0, mig=True, mig_devices=(instance,)))
    ranks = tuple(gpu_rank(i, device="cuda:0", device_uuid="GPU-1b0b7a3c-54a5", torch_device_count=1) for i in range(2))
    (finding,) = findings(CHECK, gpu_run(devices=devices, ranks=ranks))
    assert finding.seen == "2 ranks on one MIG instance"
    assert finding.fix.startswith("a process sees one MIG instance at most")


def test_on_the_cpu() -> None:
    result = outcome(CHECK, healthy_run())
    assert (result.outcome.value, result.reason) == ("skipped", "the ranks computed on the CPU")
