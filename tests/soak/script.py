# SPDX-License-Identifier: MIT
"""A sequence as a shell script, for people: the same operations with the tools of
a shell, each with what it said. What a shell does at another pace, or not at all,
the replay in its last lines does exactly."""

import json

from bed import option_list

HEAD = """#!/bin/bash
# Seed {seed}. {kind}: {said}
#
# Run it with spoolfs and spoolfs-announcer in BUILD; it works in a new directory.
BUILD=$(realpath "${{BUILD:-build}}")
cd "$(mktemp -d)" || exit
SOURCE=${{SOURCE:-q.db}}
OPTIONS='{options}'

mount_() {{ mkdir -p "q$1"; "$BUILD/spoolfs" -o "$OPTIONS" "$SOURCE" "q$1"; }}
daemon() {{ pgrep -f "spoolfs -o .* q$1\\$"; }}
stop_() {{ p=$(daemon "$1"); kill -TERM $p; while kill -0 $p; do sleep 0.01; done 2>/dev/null; }}
kill_() {{ kill -KILL $(daemon "$1"); sleep 0.1; fusermount3 -u -z "q$1"; }}
# body MID N: N bytes after a line that says whose they are.
body() {{ echo "#$1"; head -c "$2" /dev/zero | tr '\\0' x; }}
# name MID: what the queue calls it, once it has been listed.
name() {{
	[ -s "name.$1" ] || for f in q?/.peek/*; do
		[ "$(head -n 1 "$f")" = "#$1" ] && basename "$f" > "name.$1"
	done
	cat "name.$1" 2>/dev/null || echo "nobody-knows-$1"
}}
# on WHO COMMAND: has that process run it, a shell of a session of its own.
on() {{
	[ -p "$1.to" ] || {{
		mkfifo "$1.to" "$1.said"
		setsid bash -c 'bash -c "while read -r l; do eval \\"\\$l\\"; echo \\$? > $0.said; done < $0.to" "$0"; sleep 1d' "$1" &
		exec {{fd}}> "$1.to"
		eval "to_$1=$fd"
	}}
	eval "echo \\"\\$2\\" >&\\$to_$1"
	read -r said < "$1.said"
	echo "$1: $2: $said"
}}
"""

TAIL = """
# What was wrong:
{wrong}
#
# Exactly the same again: scripts/soak replay FILE, with this FILE:
# {kept}
"""


def shown(name):
    return f"$(name {name})"


def path(op, *names):
    return "/".join([f"q{op['m']}", *names])


def at(op):
    return path(op, shown(op["mid"]))


def fd_of(handle):
    return 10 + int("".join(c for c in handle.split(".")[0] if c.isdigit()))


def end_line(op):
    how = {"KILL": "kill -KILL $$"}.get(op["how"], f"exit {op['how']}")
    return f"echo '{how}' >&$to_{op['who']}; sleep 0.1  # {op['who']} ends"


def plain(op):
    """What needs no process of its own."""
    m = op.get("m")
    lines = {
        "mount": lambda: f"mount_ {m}",
        "stop": lambda: f"stop_ {m}",
        "kill": lambda: f"kill_ {m}" + ("" if op.get("stay") else f"; mount_ {m}"),
        "pause": lambda: f"echo pause > q{m}/.control",
        "resume": lambda: f"echo resume > q{m}/.control",
        "poll": lambda: f"echo poll > q{m}/.control",
        "sync": lambda: f"sync q{m}/.control",
        "release": lambda: f"echo \"release {shown(op['mid'])} {op['delay'] or ''}\" > q{m}/.control",
        "settle": lambda: f"sleep {op['s']}; ls q?",
        "look": lambda: "ls q? q?/.inflight q?/.dead q?/.drafts",
        "gauges": lambda: "grep -E '^(ready|in_flight|drafts|dead)=' q?/.control",
        "end": lambda: end_line(op),
        "burst": lambda: "\n".join(
            f"on {who} '{{ body {mid} {op['n']}; }} > {path(op, op['name'])}' &"
            for who, mid in zip(op["whos"], op["mids"])) + "\nwait $(jobs -p | tail -n 3)",
        "race": lambda: "\n".join(
            f'on {who} "' + (f"exec {fd_of(op['h'])}< {at(op)}" if op["kind"] == "open" else f"rm -f {at(op)}") + '" &'
            for who in op["whos"]) + f"\nwait $(jobs -p | tail -n {len(op['whos'])})",
    }  # fmt: skip
    return lines[op["op"]]() if op["op"] in lines else None


def grace(op):
    return f"stat q{op['m']}/<the name of m{op['mid']}>  # {op['call']}"


def of_process(op):
    """What a process is told; descriptors by number."""
    directory = {"top": "", "inflight": ".inflight", "dead": ".dead", "drafts": ".drafts"}
    lines = {
        "put": lambda: f"body {op['mid']} {op['n'] or 0} {'>>' if 'APPEND' in op['flags'] else '>'} {path(op, op['name'])}",
        "wopen": lambda: f"exec {fd_of(op['h'])}>{'>' if 'APPEND' in op['flags'] else ''} {path(op, op['name'])}",
        "drename": lambda: f"mv q{op['m']}/<draft m{op['mid']}> {path(op, op['to'])}",
        "drm": lambda: f"rm q{op['m']}/<draft m{op['mid']}>",
        "dview": lambda: f"mv q{op['m']}/.drafts/<m{op['mid']}> {path(op, op['to'])}" if op["to"] else f"rm q{op['m']}/.drafts/<m{op['mid']}>",
        "ls": lambda: f"ls {path(op, directory[op['dir']])}",
        "stat": lambda: f"stat -c %s {at(op)}",
        "peek": lambda: f"cat {path(op, '.peek', shown(op['mid']))}",
        "refused": lambda: f": 1<> {at(op)}",
        "open": lambda: f"exec {fd_of(op['h'])}< {at(op)}",
        "cat": lambda: f"cat {at(op)}" if op["n"] is None else f"head -c {op['n']} {at(op)}",
        "next": lambda: f"timeout 0.1 cat q{op['m']}/.next",
        "rm": lambda: f"rm -f {at(op)}",
        "mv": lambda: f"mv {at(op)} {path(op, op['to'])}",
        "onto": lambda: f"mv -T {at(op)} {path(op, shown(op['other']))}",
        "move": lambda: f"mv {at(op)} {path(op, op['where'])}/",
        "touch": lambda: f"touch {'' if op['after'] is None else '-d +' + str(op['after']) + 'seconds '}{at(op)}",
        "back": lambda: f"mv {path(op, '.dead', shown(op['mid']))} q{op['m']}/",
        "discard": lambda: f"rm {path(op, '.dead', shown(op['mid']))}",
        "letter": lambda: f"cat {path(op, '.dead', shown(op['mid']))}",
    }  # fmt: skip
    return lines[op["op"]]()


def of_handle(op, owners):
    who, fd = owners.get(op["h"], "s0w"), fd_of(op["h"])
    lines = {
        "read": f"head -c {op.get('n')} <&{fd}",
        "close": f"exec {fd}<&-",
        "wclose": f"exec {fd}>&-",
        "write": f"head -c {op.get('n')} /dev/zero | tr '\\\\0' y >&{fd}",
    }
    return f'on {who} "{lines[op["op"]]}"'


def line_of(op, owners, names):
    if op["op"] == "grace":
        return f"# {grace(op)}"
    found = plain(op)
    if found:
        return found
    if op["op"] in ("read", "close", "write", "wclose"):
        return of_handle(op, owners)
    if op.get("h"):
        owners[op["h"]] = op["who"]
    if op.get("name"):
        names[op["mid"]] = op["name"]
    text = of_process(op)
    given = names.get(op.get("mid"), "")
    text = text.replace(f"<draft m{op.get('mid')}>", given).replace(f"<m{op.get('mid')}>", f"*-{given}")
    if op["op"] in ("drename", "dview") and op["to"]:
        names[op["mid"]] = op["to"]
    return f'on {op["who"]} "{text}"'


def script(seed, conf, ops, wrong):
    owners, names = {}, {}
    options = option_list(conf["options"])
    first, *rest = str(wrong).splitlines() or [""]
    out = [HEAD.format(seed=seed, kind=type(wrong).__name__, said=first, options=options)]
    out += ["export -f name body", "mount_ 0"]
    out += [line_of(op, owners, names) for op in ops]
    kept = json.dumps({"config": conf, "ops": ops})
    said = "\n".join("#   " + x for x in [first, *rest])
    return "\n".join(out) + TAIL.format(wrong=said, kept=kept)
