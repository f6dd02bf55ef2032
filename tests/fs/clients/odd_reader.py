#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""odd_reader.py HOW PATH [OUT]: reads a message in a way that no shell does.

mmap, sendfile      print its bytes
exec                starts a program while it has it open, then prints it
twice               opens it a second time while the first is open, prints both
importer ARCHIVE    lists, opens, copies to ARCHIVE, lists again, finds it,
                    removes it; PATH is the directory
"""

import mmap
import os
import shutil
import subprocess
import sys


def by_mmap(path):
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        os.write(1, m[:])


def by_sendfile(path):
    with open(path, "rb") as f:
        while os.sendfile(1, f.fileno(), None, 65536) > 0:
            pass


def twice(path):
    with open(path, "rb") as f, open(path, "rb") as g:
        os.write(1, f.read() + g.read())


def by_exec(path):
    with open(path, "rb") as f:
        for _ in range(5):
            subprocess.run(["true"], close_fds=False, check=True)
        os.write(1, f.read())


def importer(directory, archive):
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        with open(path, "rb") as f:
            f.readline()
        if name not in os.listdir(directory):
            sys.exit(f"{name} is not listed to its own reader")
        shutil.copy(path, os.path.join(archive, name))
        if name not in os.listdir(directory):
            sys.exit(f"{name} is not listed any more")
        os.unlink(path)
        if name in os.listdir(directory):
            sys.exit(f"{name} is still listed")


how = {
    "mmap": by_mmap,
    "sendfile": by_sendfile,
    "exec": by_exec,
    "twice": twice,
    "importer": importer,
}
how[sys.argv[1]](*sys.argv[2:])
