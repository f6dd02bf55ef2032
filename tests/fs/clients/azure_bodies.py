#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""azure_bodies.py DIR COUNT SEED ENCODING: random message bodies, one file each.

text: what XML can carry, with everything that makes it hard: markup, a CDATA end,
CR and CR LF, blanks at the ends, many alphabets. base64: any bytes. Always among
them: an empty one and those of exactly the size the service takes (64 KiB on the
wire). All but the empty one are different.
"""
import os
import random
import sys

directory, count, seed, encoding = sys.argv[1:]
draw = random.Random(int(seed))
WIRE = 65536

PIECES = ["plain ", "<tag a=\"b\">", "</QueueMessage>", "]]>", "<![CDATA[", "&amp;", "&#65;",
          "\t", "\n", "\r", "\r\n", "  ", "'", "\"", "\u00e4\u00f6\u00fc", "\u20ac",
          "\u4e2d\u6587", "\U0001f4ec", "\u0301", "\u200b", "\ufffd", "\x7f", "\u0085", "%20+",
          "\u2028"]


def text(size):
    """At most SIZE bytes as they are on the wire, which is after escaping."""
    out, wire = [], 0
    while True:
        piece = draw.choice(PIECES)
        wire += len(piece.encode())
        if wire > size:
            return "".join(out).encode()
        out.append(piece)


def body(number):
    if encoding == "base64":
        return number + draw.randbytes(draw.choice([0, 1, 2, 3, 100, 5000]))
    return draw.choice([b"", b" ", b"\r\n"]) + number + text(draw.choice([0, 10, 100, 3000]))


bodies = [b"#%06d " % i for i in range(int(count))]
bodies = [body(number) for number in bodies]
full = WIRE if encoding == "text" else WIRE // 4 * 3
bodies[0] = b""
bodies[1] = b"x" * full
# The emulator cuts what is longer than 64 KiB with its markup into pieces, also
# in the middle of a character.
bodies[2] = ("\u00e4" * 30000).encode() if encoding == "text" else draw.randbytes(full)
for i, content in enumerate(bodies):
    with open(os.path.join(directory, "%06d" % i), "wb") as file:
        file.write(content)
