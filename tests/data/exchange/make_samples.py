#!/usr/bin/env python3
"""Writes nsys.sqlite, nvprof.sqlite and stalloc.txt beside itself, by the rules of their formats, and prints what
is in them, counted here and not by fraglab."""
import os
import random
import sqlite3

FOLDER = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
ALLOCATE, RELEASE = 0, 1
PAGEABLE, PINNED, DEVICE, ARRAY, MANAGED, STATIC = range(6)
NO_STREAM = 0xFFFFFFFF
PROCESS = 0x12 << 56 | 4711 << 24  # hardware, machine 0, process, no thread


class Report:
    """Events of a report as Nsight Systems exports it."""

    def __init__(self):
        self.rows = []
        self.now = 1_000_000_000
        self.live = {}
        self.peak = {}

    def event(self, device, address, size, operation, kind=DEVICE, stream=NO_STREAM, pool=0):
        self.now += 20_000
        name = 0
        self.rows.append((self.now, 0, PROCESS, device, 1 + device, address, 0, size, kind, operation,
                          name, len(self.rows) + 1, stream, pool))
        if kind == DEVICE:
            live = self.live.setdefault(device, {})
            if operation == ALLOCATE:
                live[address] = size
            else:
                del live[address]
            self.peak[device] = max(self.peak.get(device, 0), sum(live.values()))


def nsys_report():
    report = Report()
    bases = {0: 0x7F0000000000, 1: 0x7F8000000000}
    report.event(0, 0x7F9000000000, 8 * MIB, ALLOCATE, PINNED)
    report.event(0, 0x7F0100000000, 4096, ALLOCATE, STATIC)
    for device, base in bases.items():
        held = []
        for i, size in enumerate((2, 20, 20, 140, 20, 322, 2, 64)):
            address = base + i * 512 * MIB
            report.event(device, address, (size + 4 * device) * MIB, ALLOCATE)
            held.append((address, (size + 4 * device) * MIB))
        for address, size in held[1:6:2]:
            report.event(device, address, size, RELEASE)
        report.event(device, base + 9 * 512 * MIB, 500 * MIB, ALLOCATE)
    for i in range(6):  # cudaMallocAsync on two streams
        address, stream = 0x7F4000000000 + i * 64 * MIB, 7 + 6 * (i % 2)
        report.event(0, address, (i + 1) * 3 * MIB, ALLOCATE, DEVICE, stream, 0x55D0C0DE0000)
        if i >= 2:
            report.event(0, address - 128 * MIB, (i - 1) * 3 * MIB, RELEASE, DEVICE, stream, 0x55D0C0DE0000)
    report.event(0, 0x7F9000000000, 8 * MIB, RELEASE, PINNED)
    report.event(0, 0x7F6000000000, 16 * MIB, ALLOCATE, MANAGED)

    path = os.path.join(FOLDER, "nsys.sqlite")
    if os.path.exists(path):
        os.remove(path)
    database = sqlite3.connect(path)
    database.executescript("""
        PRAGMA page_size = 512;
        CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
        CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
        CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT NULL,
            deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, address INTEGER NOT NULL,
            pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL,
            memoryOperationType INTEGER NOT NULL, name INTEGER, correlationId INTEGER,
            streamId INTEGER, localMemoryPoolAddress INTEGER);
        INSERT INTO StringIds VALUES (0, '[Unknown]'), (1, 'cudaMalloc_v3020'), (2, 'train.py');
        INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'PAGEABLE', 'Pageable'), (1, 'PINNED', 'Pinned'),
            (2, 'DEVICE', 'Device'), (3, 'ARRAY', 'Array'), (4, 'MANAGED', 'Managed'),
            (5, 'DEVICE_STATIC', 'Device Static'), (6, 'MANAGED_STATIC', 'Managed Static'),
            (7, 'UNKNOWN', 'Unknown');
        INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1760000000000000000, NULL, NULL);
    """)
    for start, _, process, device, context, address, pc, size, kind, operation, name, correlation, stream, pool in report.rows:
        database.execute("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                         (start, process, device, context, address, pc, size, kind, operation, name, correlation, stream, pool))
    database.commit()
    database.close()
    for device in sorted(report.peak):
        count = sum(1 for row in report.rows if row[3] == device and row[8] == DEVICE and row[9] == ALLOCATE)
        print(f"nsys.sqlite: device {device}, {count} allocations, peak {report.peak[device]} bytes")


def nvprof_file():
    """CUpti_ActivityMemory, field by field: a row for an allocation and its release."""
    rows, peak, live = [], 0, []
    for i in range(24):
        start = 1_623_143_000_000_000_000 + i * 1_000_000
        size = (2 + 7 * i % 40) * MIB
        end = start + (i % 5) * 2_500_000 if i % 4 else 0
        rows.append((3, 0x7F3000000000 + i * 64 * MIB, size, start, end, 4711, 0))
        live = [(until, held) for until, held in live if until == 0 or until > start] + [(end, size)]
        peak = max(peak, sum(held for _, held in live))
    rows.append((2, 0x7F9000000000, 8 * MIB, 1_623_143_000_000_000_000, 0, 4711, 0))  # pinned memory of the host
    path = os.path.join(FOLDER, "nvprof.sqlite")
    if os.path.exists(path):
        os.remove(path)
    database = sqlite3.connect(path)
    database.executescript("""
        PRAGMA page_size = 512;
        CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMORY (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, memoryKind INT NOT NULL,
            address INT NOT NULL, bytes INT NOT NULL, start INT NOT NULL, end INT NOT NULL, allocPC INT NOT NULL,
            freePC INT NOT NULL, processId INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, name INT NOT NULL);
    """)
    database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_MEMORY (memoryKind, address, bytes, start, end, allocPC, freePC, "
                         "processId, deviceId, contextId, name) VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?, 1, 0)", rows)
    database.commit()
    database.close()
    print(f"nvprof.sqlite: {len(rows) - 1} allocations, peak {peak} bytes")


def stalloc_log():
    chance = random.Random(20250904)
    live, lines, peak, count, next_address = {}, [], 0, 0, 0x7F2000000000

    def pointer(number):  # as C++ writes a void *
        return f"{number:#x}" if number else "0"

    def allocate(size, stream=0):
        nonlocal peak, count, next_address
        address = next_address
        next_address += (size + 511) // 512 * 512
        live[address] = (size, stream)
        lines.append(f"1 {address:#x} {size} {pointer(stream)}")
        count += 1
        peak = max(peak, sum(size for size, _ in live.values()))
        return address

    def release(address):
        size, stream = live.pop(address)
        lines.append(f"0 {address:#x} {size} {pointer(stream)}")

    for _ in range(12):  # weights
        allocate(chance.randrange(1, 9) * 2 * MIB)
    for iteration in range(3):
        lines.append(f"Iteration Index : {iteration}")
        for _ in range(2):
            lines.append("micro-batch : F")
            activations = []
            for _ in range(6):
                activations.append(allocate(chance.randrange(1, 64) * MIB // 4))
                release(allocate(chance.randrange(1, 4000) * 100, 96))
            lines.append("micro-batch : B")
            for address in reversed(activations):
                gradient = allocate(chance.randrange(1, 32) * MIB // 4)
                release(address)
                release(gradient)
    lines.append("Iteration Index : end")
    with open(os.path.join(FOLDER, "stalloc.txt"), "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    print(f"stalloc.txt: {len(lines)} lines, {count} allocations, peak {peak} bytes, {len(live)} never released")


nsys_report()
nvprof_file()
stalloc_log()
