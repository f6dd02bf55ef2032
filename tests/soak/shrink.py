# SPDX-License-Identifier: MIT
"""Makes a failing sequence short: leaves out what it also fails without."""

import time


def shrink(ops, wrong, fails, bound_s):
    """FAILS(ops) gives (what is wrong or None, those that were done)."""
    end = time.monotonic() + bound_s
    parts = 2
    while len(ops) > 1 and time.monotonic() < end:
        size = max(1, len(ops) // parts)
        for at in range(0, len(ops), size):
            if time.monotonic() > end:
                return ops, wrong
            some = ops[:at] + ops[at + size :]
            now, done = fails(some)
            if now and type(now) is type(wrong):
                # What came after the fault does not matter.
                ops, wrong = done, now
                parts = max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(ops), parts * 2)
    return ops, wrong
