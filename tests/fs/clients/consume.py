#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""consume.py [-f] DIR OUT: as consume.c, the way a Python program does it."""

import errno
import os
import sys


def read_one(path, out):
    try:
        with open(path, "rb") as f:
            os.write(out, f.read())
    except OSError as e:
        if e.errno in (errno.EBUSY, errno.ENOENT):
            return False
        raise
    return True


def read_forked(path, out):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if read_one(path, out) else 3)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code not in (0, 3):
        sys.exit(f"a reader ended with {code}")
    return code == 0


def main():
    reader = read_one
    args = sys.argv[1:]
    if args[0] == "-f":
        reader = read_forked
        args = args[1:]
    out = os.open(args[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    while names := sorted(os.listdir(args[0])):
        for name in names:
            path = os.path.join(args[0], name)
            if reader(path, out):
                os.unlink(path)


main()
