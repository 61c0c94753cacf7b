import msgspec
import pytest

from accel_checks.env014_unfit_cache import CHECK
from accel_doctor.evidence import Evidence
from accel_doctor.testing import findings, healthy_folder, healthy_host, healthy_run, outcome


def with_cache(name: str, environment: dict[str, str] | None = None, **changes: object) -> Evidence:
    cache = msgspec.structs.replace(healthy_folder(name, f"/cache/{name}"), **changes)
    host = msgspec.structs.replace(healthy_host(), caches=(cache,), environment=environment or {})
    return healthy_run(hosts=(host,))


@pytest.mark.parametrize("name", ["TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"])
def test_a_compilers_cache_on_a_network_disk_races(name: str) -> None:
    (finding,) = findings(CHECK, with_cache(name, file_system="nfs4", network=True))
    assert finding.message == f"{name} (/cache/{name}) lies on nfs4, where ranks race for its files"
    assert outcome(CHECK, with_cache(name, file_system="nfs4", network=True)).outcome.value == "warned"


def test_downloads_on_a_network_disk_are_how_clusters_work() -> None:
    assert findings(CHECK, with_cache("HF_HOME", file_system="lustre", network=True)) == ()


def test_a_full_disk() -> None:
    (finding,) = findings(CHECK, with_cache("TMPDIR", free_bytes=100 * 2**20))
    assert finding.message == "TMPDIR (/cache/TMPDIR) has 100 MiB left"
    assert finding.values == {"free_bytes": 100 * 2**20}


def test_a_disk_without_inodes() -> None:
    (finding,) = findings(CHECK, with_cache("TMPDIR", free_inodes=3))
    assert finding.values == {"free_inodes": 3}


@pytest.mark.parametrize("error", ["Disk quota exceeded", "Read-only file system", "no answer within 2 s"])
def test_a_folder_that_refuses_or_does_not_answer(error: str) -> None:
    (finding,) = findings(CHECK, with_cache("TMPDIR", writable=False, error=error))
    assert finding.message == f"TMPDIR (/cache/TMPDIR) cannot be used: {error}"


def test_offline_and_empty() -> None:
    offline = {"HF_HUB_OFFLINE": "1"}
    (finding,) = findings(CHECK, with_cache("HF_HUB_CACHE", offline, empty=True))
    assert finding.message == "HF_HUB_CACHE (/cache/HF_HUB_CACHE) is empty and HF_HUB_OFFLINE forbids to fill it"
    assert findings(CHECK, with_cache("HF_HUB_CACHE", offline, exists=False, empty=None))
    assert findings(CHECK, with_cache("HF_HUB_CACHE", {"HF_HUB_OFFLINE": "0"}, empty=True)) == ()


def test_offline_a_read_only_store_of_models_is_right() -> None:
    offline = {"HF_HUB_OFFLINE": "1"}
    refusal = "Read-only file system"
    assert findings(CHECK, with_cache("HF_HOME", offline, writable=False, error=refusal, free_bytes=0)) == ()
    assert findings(CHECK, with_cache("HF_HOME", writable=False, error=refusal, free_bytes=0))


def test_hosts_whose_caches_were_not_read_are_not_judged() -> None:
    host = msgspec.structs.replace(healthy_host(), caches=None)
    assert outcome(CHECK, healthy_run(hosts=(host,))).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
