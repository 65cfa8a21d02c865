"""What operators of PyTorch find when they look at values themselves, in C++, where no function of
Python is called: in backward passes, or inside others. The stack says which operator reads."""
import ctypes
import re

# Guards against bad input, or comparisons a script asserts: these read one byte, which is then true.
CHECKS = {"linalg_eig", "linalg_eigvals", "segment_reduce", "allclose", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"}
# Asked inside of these, whether something failed: it did not.
NO_ERRORS = {"_linalg_check_errors"}
# The same as CHECKS where the script itself calls them: other operators ask by equal() for conditions of both kinds.
OUTERMOST_CHECKS = {"equal"}
# These read how many values differ from the one before: zeros have one, no input of some length none.
LENGTHS = {"_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive"}

DEPTH = 48
NAME = re.compile(rb"_ZN2at4_ops(\d+)")


class Symbol(ctypes.Structure):
    """Dl_info of dlfcn.h."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("address", ctypes.c_void_p)]


class Stack:
    def __init__(self):
        process = ctypes.CDLL(None)
        self.walk = process.backtrace
        self.walk.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int]
        self.look_up = process.dladdr
        self.look_up.argtypes = [ctypes.c_void_p, ctypes.POINTER(Symbol)]
        self.names = {}  # of return addresses: a look-up goes through all symbols of a library

    def name_of(self, address):
        """The operator that a return address belongs to: at::_ops::NAME::call, or None."""
        if address not in self.names:
            symbol = Symbol()
            found = NAME.match(symbol.name or b"") if self.look_up(address, ctypes.byref(symbol)) else None
            start = found.end() if found else 0
            self.names[address] = symbol.name[start:start + int(found.group(1))].decode() if found else None
        return self.names[address]

    def operators(self):
        """From the innermost outwards."""
        addresses = (ctypes.c_void_p * DEPTH)()
        for address in addresses[:self.walk(addresses, DEPTH)]:
            name = self.name_of(address) if address else None
            if name is not None:
                yield name

# Numbers of a tensor itself; all others of 16 bytes are what a search of thrust gives, whether it found and where.
READS = {"item", "_local_scalar_dense", "copy_"}
FOUND = b"\1" + bytes(15)


def answer(stack, size):
    """The bytes that an operator on the stack has to find, or None; zeros: that nothing failed."""
    name = None
    for name in stack.operators():
        if name in NO_ERRORS:
            return bytes(size)
        if size == 16:
            return FOUND if name not in READS else None
        if size == 1 and name in CHECKS or size in (4, 8) and name in LENGTHS:
            return (1).to_bytes(size, "little")
    return b"\1" if size == 1 and name in OUTERMOST_CHECKS else None
