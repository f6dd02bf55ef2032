#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""selects.py next|control DIR FLAG: waits in select(2) for DIR/.next to have a
name, or for DIR/.control to say state=paused, and prints what it then reads.
Creates FLAG when it is about to wait; the file must not be ready by then."""

import os
import select
import sys

what, directory, flag = sys.argv[1:]
fd = os.open(os.path.join(directory, "." + what), os.O_RDONLY | os.O_NONBLOCK)


def ready(timeout):
    got = select.select([fd], [], [fd], timeout)
    return bool(got[0] or got[2])


if what == "next":
    try:
        os.read(fd, 4096)
        sys.exit("a name, though there is no message")
    except BlockingIOError:
        pass
else:
    os.read(fd, 65536)
    # What changed before the first read may be told once more.
    while ready(0):
        os.lseek(fd, 0, os.SEEK_SET)
        os.read(fd, 65536)
if ready(0):
    sys.exit("ready too early")
os.close(os.open(flag, os.O_WRONLY | os.O_CREAT))
text = b""
while not text or what == "control" and b"state=paused\n" not in text:
    if not ready(15):
        sys.exit("never ready")
    if what == "control":
        os.lseek(fd, 0, os.SEEK_SET)
    text = os.read(fd, 65536)
os.write(1, text)
