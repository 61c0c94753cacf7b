"""Which hosts exchange data with which, round by round, so that each has one partner at a time. Pure."""

FULL = 8
"""Up to so many hosts every pair is tried; above it each host has about log2(hosts) partners."""


def rounds(count: int) -> list[list[tuple[int, int]]]:
    """Return the pairs of each round.

    A tournament where hosts are few (at most 8 rounds); else partners at the distances 1, 2, 4 … of a hypercube
    (9 rounds for 512 hosts): never all with all.
    """
    if count > FULL:
        each = range((count - 1).bit_length())
        return [[(i, i ^ 1 << k) for i in range(count) if i < (i ^ 1 << k) < count] for k in each]
    seats = [*range(count), *([-1] if count % 2 else [])]
    found = []
    for _ in range(len(seats) - 1):
        pairs = zip(seats[: len(seats) // 2], reversed(seats[len(seats) // 2 :]), strict=True)
        found.append([(min(a, b), max(a, b)) for a, b in pairs if min(a, b) >= 0])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return found
