"""Copies by all ranks at once, in two real ranks; the CPU stands for a device."""

import pytest

from accel_doctor.evidence import ProbeOptions
from copies_ranks import SIZE_BYTES
from ranks import RunRanks

pytestmark = pytest.mark.ranks


def test_every_rank_tells_what_it_copied_while_the_others_did(run_ranks: RunRanks) -> None:
    options = ProbeOptions(sweep_s=0.02, busy_s=0.01)
    ran = run_ranks(options=options, work="copies_ranks:on_the_cpu")
    assert ran.codes == (0, 0), ran.output
    for rank in ran.ranks:
        assert rank.copies is not None
        assert rank.copies.size_bytes == SIZE_BYTES
        assert 0.01 < rank.copies.each_way_gb_s < 1000
    without = run_ranks(options=options)
    assert without.codes == (0, 0), without.output
    assert [r.copies for r in without.ranks] == [None, None]
