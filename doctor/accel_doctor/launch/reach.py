"""Whether another machine's address answers over TCP, and a port at which this one does."""

import errno
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from accel_doctor.evidence import Interface, Reach
from accel_doctor.machine.interfaces import is_loopback, resolve

CONNECT_S = 2.0
_UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EINVAL, errno.EACCES, errno.EPERM)


def reach(to: str, host: str, port: int, interfaces: Sequence[Interface], *, late: bool = False) -> Reach:
    """Connect once and close; a refusal is an answer too: the host is there and nobody listens yet."""
    address = next(iter(resolve(host)), "")
    if not address:
        return Reach(to=to, host=host, port=port, how="unresolved", late=late)
    began_s = time.monotonic()
    how, error = _connect(address, port)
    return Reach(
        to=to,
        host=host,
        port=port,
        address=address,
        how=how,
        loopback=is_loopback(address),
        own=any(address in i.addresses for i in interfaces),
        took_ms=round(1e3 * (time.monotonic() - began_s), 1),
        late=late,
        error=error,
    )


def _connect(address: str, port: int) -> tuple[str, str]:
    try:
        with socket.create_connection((address, port), timeout=CONNECT_S):
            return "open", ""
    except ConnectionRefusedError:
        return "refused", ""
    except TimeoutError:
        return "timeout", f"no answer within {CONNECT_S:g} s"
    except OSError as error:
        how = "unreachable" if error.errno in _UNREACHABLE else "timeout"
        return how, error.strerror or str(error)


class Door:
    """A port of this machine at which the other doctors try whether they can reach it; it is sent nothing."""

    def __init__(self, address: str) -> None:
        """Listen on ``address`` on a port that the system picks; on none where that cannot be."""
        self.port: int | None = None
        self._socket: socket.socket | None = None
        if not address:
            return
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with suppress(OSError):
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.bind((address, 0))
            listener.listen(64)
            self._socket, self.port = listener, int(listener.getsockname()[1])
            threading.Thread(target=self._answer, args=(listener,), daemon=True, name="accel-doctor door").start()

    @staticmethod
    def _answer(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                listener.accept()[0].close()

    def close(self) -> None:
        """Stop listening."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
