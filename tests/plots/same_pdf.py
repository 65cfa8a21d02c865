#!/usr/bin/env python3
"""same_pdf.py A.pdf B.pdf: exits 0 when both have the same streams, but for the time at which they were made."""
import re
import sys
import zlib

STREAM = re.compile(rb"<<(?P<head>(?:(?!<<).)*?)>>\s*stream\r?\n(?P<bytes>.*?)\r?\nendstream", re.S)


def streams(pdf):
    """What its streams hold, without the time."""
    found = []
    for match in STREAM.finditer(pdf):
        if b"/XRef" in match["head"]:
            continue  # places of the others, which follow from their lengths
        try:
            plain = zlib.decompress(match["bytes"])
        except zlib.error:
            plain = match["bytes"]
        found.append(re.sub(rb"\(D:\d{14}", b"(D:", plain))
    return found


if __name__ == "__main__":
    first, second = (streams(open(path, "rb").read()) for path in sys.argv[1:])
    if not first or first != second:
        sys.exit(f"{sys.argv[1]} and {sys.argv[2]} differ")
