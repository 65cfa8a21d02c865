"""Policies written in Python, whose methods the library calls for every request."""
from __future__ import annotations

import ctypes
import itertools
import threading
from ctypes import POINTER, byref, c_int, c_uint32, c_uint64, c_void_p
from typing import Any, Callable

from fraglab import _native
from fraglab._arguments import count, size, text
from fraglab._native import UNLIMITED, UsageError, library

_FAILED, _GRANTED, _OUT_OF_MEMORY = -1, 0, 1
ALL_POOLS = 2**32 - 1


class Device:
    """The simulated device of one run, as a policy sees it: whole segments, and a capacity.

    It is there for the methods of its policy, in the thread that calls them. Anywhere else, as after the run, its use is a UsageError.
    """

    __slots__ = ("_value", "_thread")

    def __init__(self, value: int) -> None:
        self._value = c_void_p(value)
        self._thread: int | None = None  # that is in a method of the policy

    def _now(self) -> c_void_p:
        if self._thread != threading.get_ident():
            raise UsageError("device: it is used outside the methods of its policy; expected a call while one runs, in its thread", where="device")
        return self._value

    def _lend(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a method of the policy, which may use the device until it returns. Methods nest: synchronize calls free."""
        before, self._thread = self._thread, threading.get_ident()
        try:
            return method(*arguments)
        finally:
            self._thread = before

    def __reduce__(self):
        raise TypeError("a device cannot be copied")

    @property
    def capacity(self) -> int | None:
        """Bytes; None: no limit."""
        capacity = library.device_capacity(self._now())
        return None if capacity == UNLIMITED else capacity

    def malloc(self, bytes: int | str) -> int | None:
        """One cudaMalloc. The address of the segment; None: the device is full. (No address is 0.) At most one for each request of the trace and 4096 more at a time."""
        address = c_uint64()
        if library.device_malloc(self._now(), size(bytes, "bytes"), byref(address)) != 0:
            raise _Ends
        return address.value or None

    def free(self, address: int) -> None:
        """One cudaFree, of a whole segment without live blocks."""
        if library.device_free(self._now(), count(address, "address")) != 0:
            raise _Ends

    def synchronize(self) -> None:
        """Wait for all streams: frees that wait for one arrive (``free`` is called) before it returns. What a policy does before it gives up."""
        if library.device_synchronize(self._now()) != 0:
            raise _Ends


class _Ends(Exception):
    """The library knows why, and says it when the call returns."""


class Policy:
    """A policy in Python, for teaching and for trying an idea out: derive from it, and give the class where a policy is asked for.

        class Bump(fraglab.Policy):
            '''Every request gets a segment of its own.'''

            def alloc(self, bytes, stream, pool):
                return self.device.malloc(bytes)

            def free(self, address, stream):
                self.device.free(address)

        recording.run(Bump).peak.reserved_bytes

    Each run makes an object of the class. ``device`` is a ``Device``: ``malloc``, ``free``, ``synchronize``, ``capacity``; only the methods may use it. Rows name the policy by ``name``,
    or by the name of its class. It is slow, by the two calls of Python for each request: about a hundred times slower than one in C.
    Every answer is checked: a block that overlaps another, or lies in no segment, ends the run with a UsageError that says so; what a
    method raises ends it, too, and is raised. Streams: a free arrives once no stream uses the block any more.
    """

    name: str | None = None

    def __init__(self, device: Device) -> None:
        self.device = device

    def alloc(self, bytes: int, stream: int, pool: int) -> int | tuple[int, int] | None:
        """The address of a block of at least so many bytes, or (address, bytes of the block); None: out of memory, whatever was tried."""
        raise NotImplementedError(f"{type(self).__name__} has no method alloc(self, bytes, stream, pool)")

    def free(self, address: int, stream: int) -> None:
        """The program needs the block at this address no more."""
        raise NotImplementedError(f"{type(self).__name__} has no method free(self, address, stream)")

    def empty_cache(self, pool: int | None) -> None:
        """The program asks for cached memory to be given back: of a pool, or of all (None)."""


_BEGIN = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(c_void_p))
_ALLOC = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_native.PolicyRequest), POINTER(_native.PolicyGrant))
_FREE = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint32)
_EMPTY_CACHE = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint32)


def _guarded(function, method):
    """What a method raises waits for the end of the call (_native.raise_kept), and the library hears that the method failed."""

    def guarded(*arguments) -> int:
        thread = threading.get_ident()
        is_first = thread not in _native._busy
        _native._busy.add(thread)
        try:
            return method(*arguments)
        except _Ends:
            return _FAILED
        except BaseException as error:  # noqa: B902  KeyboardInterrupt, too
            _native.keep_raised(error)
            return _FAILED
        finally:
            if is_first:
                _native._busy.discard(thread)

    return function(guarded)


class PolicyHandle(_native.Handle):
    """The handle of the library, and the objects of the runs that use it."""

    __slots__ = ("functions",)

    def __init__(self, kind: type[Policy]) -> None:
        self.value, self.destroy = None, library.policy_destroy
        name = kind.name if kind.name is not None else kind.__name__
        if not isinstance(name, str):
            raise TypeError(f"name of {kind.__name__} is {type(name).__name__}; expected str")
        runs: dict[int, tuple[Policy, Device]] = {}
        numbers = itertools.count(1)

        def begin(user, device, run) -> int:
            number, lent = next(numbers), Device(device)
            runs[number] = lent._lend(kind, lent), lent
            run[0] = number
            return 0

        def alloc(run, request, grant) -> int:
            asked = request[0]
            policy, device = runs[run]
            answer = device._lend(policy.alloc, asked.bytes, asked.stream, asked.pool)
            if answer is None:
                return _OUT_OF_MEMORY
            if isinstance(answer, tuple) and len(answer) == 2:
                address, block_bytes = answer
            else:
                address, block_bytes = answer, asked.bytes
            grant[0].address, grant[0].bytes = count(address, f"the address that {name}.alloc returns"), count(block_bytes, f"the bytes that {name}.alloc returns")
            return _GRANTED

        def free(run, address, stream) -> int:
            policy, device = runs[run]
            device._lend(policy.free, address, stream)
            return 0

        def empty_cache(run, pool) -> int:
            policy, device = runs[run]
            device._lend(policy.empty_cache, None if pool == ALL_POOLS else pool)
            return 0

        self.functions = {"begin": _guarded(_BEGIN, begin), "alloc": _guarded(_ALLOC, alloc), "free": _guarded(_FREE, free), "empty_cache": _guarded(_EMPTY_CACHE, empty_cache)}
        given = _native.PolicyFunctions(name=text(name, "name"), **{member: ctypes.cast(function, c_void_p) for member, function in self.functions.items()})
        stored, error = c_void_p(), _native.new_error()
        _native.check(library.policy_create(byref(given), byref(stored), byref(error)), error)
        self.value = stored.value


def python_policy(kind: type[Policy]) -> PolicyHandle:
    if kind is Policy:
        raise UsageError("policy: fraglab.Policy itself has no alloc; give a class that is derived from it", where="policy")
    return PolicyHandle(kind)
