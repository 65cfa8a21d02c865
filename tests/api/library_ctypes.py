"""Prints the rows of best-fit and of a policy in a shared object, and the first line of the cards:
library_ctypes.py LIBRARY RECORDING POLICY.so"""
import ctypes
import sys


class Error(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("code", ctypes.c_int32), ("has_offset", ctypes.c_int32),
                ("line", ctypes.c_uint64), ("column", ctypes.c_uint64), ("offset", ctypes.c_uint64),
                ("where", ctypes.c_char * 256), ("sentence", ctypes.c_char * 512)]


library = ctypes.CDLL(sys.argv[1])
library.fraglab_result_json.restype = ctypes.c_char_p
error = Error(size=ctypes.sizeof(Error))


def call(name, *arguments):
    if getattr(library, name)(*arguments, ctypes.byref(error)) != 0:
        sys.exit(f"{error.where.decode()}: {error.sentence.decode()}")


recording = ctypes.c_void_p()
call("fraglab_open_path", None, sys.argv[2].encode(), None, ctypes.byref(recording))
for name in ("best-fit", sys.argv[3]):
    policy, result = ctypes.c_void_p(), ctypes.c_void_p()
    call("fraglab_policy_parse", name.encode(), ctypes.byref(policy))
    call("fraglab_run", None, recording, ctypes.c_size_t(0), policy, None, ctypes.byref(result))
    print(library.fraglab_result_json(result).decode(), end="")
    library.fraglab_result_destroy(result)
    library.fraglab_policy_destroy(policy)
library.fraglab_recording_close(recording)
cards = ctypes.c_void_p()
call("fraglab_cards_json", ctypes.byref(cards))
print(ctypes.string_at(cards.value).decode().splitlines()[0])
library.fraglab_free(cards)
