#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""watch.py DIR: prints "EVENT NAME" for each inotify event in DIR, from the
system calls themselves; "WATCHING" first."""

import ctypes
import os
import struct
import sys

EVENTS = {
    0x008: "CLOSE_WRITE",
    0x040: "MOVED_FROM",
    0x080: "MOVED_TO",
    0x100: "CREATE",
    0x200: "DELETE",
}

libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
if libc.inotify_add_watch(fd, os.fsencode(sys.argv[1]), sum(EVENTS)) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("WATCHING", flush=True)
while True:
    data = os.read(fd, 65536)
    while data:
        _, mask, _, length = struct.unpack_from("iIII", data)
        name = data[16 : 16 + length].rstrip(b"\0").decode()
        data = data[16 + length :]
        for bit, text in EVENTS.items():
            if mask & bit:
                print(text, name, flush=True)
