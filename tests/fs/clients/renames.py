#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""renames.py HOW DIR NAME TEXT: the write-then-rename of several languages.

python      tempfile.NamedTemporaryFile(dir=DIR): tmpXXXXXXXX, no dot
python-dot  the same with a prefix that starts with a dot
java        Files.createTempFile and Files.move: a number and .tmp
dot-tmp     NAME.tmp and os.replace
"""

import os
import sys
import tempfile

how, directory, name, text = sys.argv[1:]
target = os.path.join(directory, name)


def python(prefix):
    with tempfile.NamedTemporaryFile("w", dir=directory, prefix=prefix, delete=False) as f:
        f.write(text + "\n")
    os.replace(f.name, target)


def java():
    path = os.path.join(directory, "8141713921741923711.tmp")
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with open(path, "w", encoding="utf-8") as f:
        f.write(text + "\n")
    os.rename(path, target)


def dot_tmp():
    with open(target + ".tmp", "w", encoding="utf-8") as f:
        f.write(text + "\n")
        f.flush()
        os.fsync(f.fileno())
    os.replace(target + ".tmp", target)


if how == "java":
    java()
elif how == "dot-tmp":
    dot_tmp()
else:
    python("." if how == "python-dot" else None)
