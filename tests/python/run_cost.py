#!/usr/bin/env python3
"""What Recording.run costs over the call of C: python3 tests/python/run_cost.py (needs `make library`). Fails above 10 µs.

Both are timed in turn, call by call, on a recording of a few events, where the call itself is short; the least of many counts,
as other programs only ever add time.
"""
import ctypes
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
sys.dont_write_bytecode = True
import fraglab  # noqa: E402
from fraglab import _native  # noqa: E402
from fraglab._recording import parse_policy, run_options  # noqa: E402

CALLS, LIMIT_US = 10000, 10


def main() -> int:
    trace = fraglab.Trace()
    trace.alloc("a", "10MiB")
    recording = trace.finish()
    library, policy, options, stored = _native.library, parse_policy("best-fit"), run_options("24GiB"), ctypes.c_void_p()
    error = _native.new_error()
    handle = recording._handle.value
    call = _native.ctypes.byref

    def plain() -> None:
        library.run(None, handle, 0, policy.value, call(options), call(stored), call(error))
        library.result_json(stored)
        library.result_destroy(stored)

    def whole() -> None:
        recording.run("best-fit", trace=0, capacity="24GiB")

    least = {}
    for _ in range(CALLS):
        for function in (plain, whole):
            begin = time.perf_counter_ns()
            function()
            least[function] = min(least.get(function, 1 << 62), time.perf_counter_ns() - begin)
    cost = (least[whole] - least[plain]) / 1e3
    print(f"C call {least[plain] / 1e3:.1f} us, Recording.run {least[whole] / 1e3:.1f} us: {cost:.1f} us more (at most {LIMIT_US})")
    return 0 if cost <= LIMIT_US else 1


if __name__ == "__main__":
    sys.exit(main())
