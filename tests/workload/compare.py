"""Requests of a dry run against generated ones, request by request.

    compare.py store RUN.pickle              prints the list of requests of a snapshot, to be kept
    compare.py list GENERATED.txt            prints that of a trace in text form
    compare.py sum LIST                      prints a sum of it, of a snapshot, a stored list or a trace in text form
    compare.py row NAME TRUTH GENERATED.txt  one row of the table; TRUTH is a snapshot or a stored list
    compare.py bars ROWS                     a line for each bar; ROWS has lines "CONFIG CARD KNOB=VALUE... | ALLOCATED MADE | RESERVED... | MADE..."

A list has a line for each request, "+BYTES", and for each release, "-N" of the N-th request; stored, "~N" of the
N-th last, as what is done again then reads the same. Releases with
no request between them are sorted: the order in which autocast gives back its casts follows host addresses.
Workspaces of convolutions are compared in blocks of 512 bytes: a dry run asks for odd sizes just below."""
import hashlib
import pickle
import sys


def sort_releases(events):
    run = []
    for event in events:
        if event[0] == "-":
            run.append(event)
            continue
        yield from sorted(run)
        run = []
        yield event
    yield from sorted(run)


def read_snapshot(path):
    """FILE.pickle or FILE.pickle#N: of the N-th device with requests, from 0."""
    path, _, device = path.partition("#")
    with open(path, "rb") as file:
        traces = [trace for trace in pickle.load(file)["device_traces"] if trace]
    live, asked = {}, set()
    count = 0
    for entry in traces[int(device or 0)] if traces else []:
        if entry["action"] == "alloc":
            live[entry["addr"]] = count
            count += 1
            yield "+", entry["size"]
        elif entry["action"] == "free_requested":
            asked.add(entry["addr"])
        elif entry["action"] == "free_completed" and entry["addr"] in live:
            yield "-", live.pop(entry["addr"])
            asked.discard(entry["addr"])
    for address in asked & live.keys():  # of another stream, which the next request would have waited for
        yield "-", live[address]


def read_text(path):
    """FILE.txt or FILE.txt#DEVICE; the first device, if none is named."""
    path, _, device = path.partition("#")
    live = {}
    count = 0
    is_read = False
    with open(path) as file:
        for line in file:
            word = line.split()
            if word[:1] == ["device"]:
                is_read = word[1] == (device or "0")
            elif not is_read:
                continue
            elif word[:1] == ["alloc"]:
                live[word[1]] = count
                count += 1
                yield "+", int(word[2])
            elif word[:1] == ["free"]:
                yield "-", live.pop(word[1])


def read_list(path):
    count = 0
    with open(path) as file:
        for line in file:
            count += line[0] == "+"
            if line[0] == "~":
                yield "-", count - int(line[1:])
            elif line[0] in "+-":
                yield line[0], int(line[1:])


def round_workspaces(events):
    for sign, number in events:
        yield sign, number | 511 if sign == "+" and number % 2 and number % 512 > 256 else number


def read(path):
    if path.partition("#")[0].endswith(".pickle"):
        return list(sort_releases(round_workspaces(read_snapshot(path))))
    reader = read_list if path.endswith(".list") else read_text
    return list(sort_releases(round_workspaces(reader(path))))


def find_peak(events):
    sizes = [number for sign, number in events if sign == "+"]
    live = peak = 0
    for sign, number in events:
        live += (number + 511) // 512 * 512 if sign == "+" else -((sizes[number] + 511) // 512 * 512)
        peak = max(peak, live)
    return peak


def print_row(name, truth, made):
    same = next((i for i, (a, b) in enumerate(zip(truth, made)) if a != b), min(len(truth), len(made)))
    requests = [sum(sign == "+" for sign, _ in events) for events in (truth, made)]
    peaks = [find_peak(truth), find_peak(made)]
    is_equal = truth == made
    verdict = "equal" if is_equal else f"differs at event {same}"
    print(f"{name:44} {requests[0]:8,} {requests[1]:8,} {peaks[0] / 2**20:10.2f} {peaks[1] / 2**20:10.2f} "
          f"{100 * peaks[1] / peaks[0] - 100:+7.2f} %  {verdict}")
    return is_equal or (len(sys.argv) > 5 and abs(peaks[1] / peaks[0] - 1) <= float(sys.argv[5]))


def read_rows(path):
    with open(path) as file:
        for line in file:
            words, allocated, is_reserved, made_reserved = ([*part.split()] for part in line.split("|"))
            knobs = dict(word.split("=", 1) for word in words[2:])
            knobs.pop("steps", None)
            peaks, is_reserved, made_reserved = ([float(number) for number in part] for part in (allocated, is_reserved, made_reserved))
            yield tuple(words[:2]), knobs, peaks, is_reserved, made_reserved


def print_share(what, errors, *limits):
    shares = ", ".join(f"within {limit} % in {100 * sum(error <= limit for error in errors) / len(errors):.0f} %" for limit in limits)
    print(f"{what}: {shares} of {len(errors)}, at most {max(errors):.2f} % off")


def find_effects(rows):
    """How far the effects of a knob are apart, in percentage points: of two rows of a model on a card that differ in one knob."""
    for i, (model, knobs, (truth, made), *_) in enumerate(rows):
        for other, changed, (other_truth, other_made), *_ in rows[:i]:
            if model == other and sum(knobs.get(key) != changed.get(key) for key in {*knobs, *changed}) == 1:
                yield 100 * abs(truth / other_truth - made / other_made)


def print_bars(rows):
    print_share("peak allocated", [100 * abs(made / truth - 1) for _, _, (truth, made), *_ in rows], 3, 10)
    print_share("peak reserved under pytorch", [100 * abs(made[0] / truth[0] - 1) for *_, truth, made in rows], 3, 10)
    effects = list(find_effects(rows))
    if effects:
        print(f"effect of a knob: within 5 points in {sum(effect <= 5 for effect in effects)} of {len(effects)}, at most {max(effects):.2f} points off")
    orders = [[sorted(range(len(peaks)), key=peaks.__getitem__) for peaks in (truth, made)] for *_, truth, made in rows]
    print(f"order of the settings by peak reserved: the same in {sum(truth == made for truth, made in orders)} of {len(rows)}")


if sys.argv[1] == "bars":
    print_bars(list(read_rows(sys.argv[2])))
elif sys.argv[1] in ("store", "list"):
    count = 0
    for sign, number in read(sys.argv[2]):
        count += sign == "+"
        print(f"~{count - number}" if sign == "-" and sys.argv[1] == "store" else f"{sign}{number}")
elif sys.argv[1] == "sum":
    text = "".join(f"{sign}{number}\n" for sign, number in read(sys.argv[2]))
    print(hashlib.sha256(text.encode()).hexdigest()[:16])
else:
    sys.exit(0 if print_row(sys.argv[2], read(sys.argv[3]), read(sys.argv[4])) else 1)
