"""How many bytes each TCP connection of this machine has carried, by the kernel's socket diagnostics (netlink)."""

import socket
import struct
from collections.abc import Iterator

SOCK_DIAG = 4
BY_FAMILY = 20
REQUEST_DUMP = 0x301
DONE, ERROR = 3, 2
INFO = 2
ESTABLISHED = 1 << 1
LIMIT_S = 0.5
_HEADER = struct.Struct("=IHHII")
_MESSAGE_BYTES, _INODE_AT, _BYTES_AT = 72, 68, 120


def carried() -> dict[str, int] | None:
    """Return the bytes sent and received by each established TCP socket, by inode; ``None`` where it is refused."""
    found: dict[str, int] = {}
    try:
        for family in (socket.AF_INET, socket.AF_INET6):
            found.update(_ask(family))
    except (OSError, struct.error):
        return None
    return found


def _ask(family: int) -> Iterator[tuple[str, int]]:
    request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 1 << (INFO - 1), 0, ESTABLISHED) + bytes(48)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as asked:
        asked.settimeout(LIMIT_S)
        asked.send(_HEADER.pack(_HEADER.size + len(request), BY_FAMILY, REQUEST_DUMP, 1, 0) + request)
        while True:
            data = asked.recv(1 << 16)
            while len(data) >= _HEADER.size:
                length, kind, *_ = _HEADER.unpack_from(data)
                if kind == ERROR:
                    raise OSError("socket diagnostics are refused")
                if kind == DONE or length < _HEADER.size:
                    return
                yield _read(data[_HEADER.size : length])
                data = data[(length + 3) & ~3 :]


def _read(message: bytes) -> tuple[str, int]:
    """Return a socket's inode, and the bytes acknowledged and received of its ``tcp_info``."""
    inode = str(struct.unpack_from("=I", message, _INODE_AT)[0])
    rest = message[_MESSAGE_BYTES:]
    while len(rest) >= 4:
        size, kind = struct.unpack_from("=HH", rest)
        if kind == INFO and size >= 4 + _BYTES_AT + 16:
            sent, received = struct.unpack_from("=QQ", rest, 4 + _BYTES_AT)
            return inode, sent + received
        if size < 4:
            break
        rest = rest[(size + 3) & ~3 :]
    return inode, 0
