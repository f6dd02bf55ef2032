# SPDX-License-Identifier: MIT
"""The figures as PNGs, drawn by gnuplot."""

import os
import subprocess

from bed import Failed
from report import SIZE_NAMES, SUBJECTS, durability_of, number

OURS, LIMIT, OTHER = 0x1F6FB4, 0x8A8A8A, 0xD9822B
LIGHTER = {OURS: 0x9CC4E4, LIMIT: 0xCFCFCF, OTHER: 0xF2CFA5}
SPREAD = 40  # beyond that, the shortest bar would not be seen
LIMITS = ("null", "null+fdatasync", "fdatasync", "tmpfs")


def draw(path, script, height=640):
    text = (f"set terminal pngcairo size 1200,{height} font 'DejaVu Sans,12' noenhanced\n"
            f"set output '{path}'\nset border 3\nset tics nomirror out\n"
            "set grid back lt 1 lw 1 lc rgb '#c8c8c8'\n" + script)
    p = subprocess.run(["gnuplot"], input=text, capture_output=True, text=True, check=False)
    if p.returncode != 0 or p.stderr.strip():
        raise Failed(f"gnuplot: {p.stderr.strip()[:300]}")


def block(name, rows):
    return f"${name} << EOD\n" + "\n".join(rows) + "\nEOD\n"


def colour_of(subject):
    if subject.startswith("spoolfs"):
        return OURS
    return LIMIT if subject in LIMITS else OTHER


def label_of(measure, subject):
    return f"{SUBJECTS[subject][0]} ({durability_of(measure, subject)})"


def bars(path, f, measure, title):
    """Two bars for each subject, with their figures."""
    rows, tics = [], []
    subjects = f.subjects(measure)
    for place, subject in enumerate(subjects):
        y = len(subjects) - place
        tics.append(f'"{label_of(measure, subject)}" {y}')
        for i, size in enumerate(SIZE_NAMES):
            value = f.get(f"{measure}/{subject}/{size}")
            if value is None:
                continue
            colour = colour_of(subject)
            shade = colour if i == 0 else LIGHTER[colour]
            rows.append(f'{value} {y + (0.18, -0.18)[i]} {shade} "{number(value)}"')
    if not rows:
        return
    values = [float(row.split()[0]) for row in rows]
    logarithmic = max(values) > SPREAD * min(values)
    low, high = (0.6 * min(values), 2 * max(values)) if logarithmic else (0, 1.1 * max(values))
    scale = ", logarithmic" if logarithmic else ""
    draw(path, block("d", rows) + f"""
set title "{title}\\nmicroseconds per message{scale}; dark 100 bytes, light 16 KiB\\non disk before each answer (each), soon after (batches), or whenever (none)"
{"set logscale x" if logarithmic else ""}
set xrange [{low}:{high}]
set yrange [0.3:{len(subjects) + 0.7}]
set ytics ({', '.join(tics)}) scale 0
set style fill solid 1 noborder
unset key
set grid noytics
plot $d using ({low}):2:({low}):1:($2-0.17):($2+0.17):3 with boxxyerror lc rgb variable, \\
     $d using 1:2:4 with labels left offset 0.6,0
""", 220 + 46 * len(subjects))


def lines(path, title, xlabel, ylabel, series, more="", wanted=None):
    """SERIES: {legend: {x: y}}; WANTED: {x: y}, what none may be above."""
    series = {k: v for k, v in series.items() if v}
    if not series:
        return
    blocks = "".join(block(f"d{i}", [f"{x} {y}" for x, y in points.items()])
                     for i, points in enumerate(series.values()))
    colours = ("#1f6fb4", "#d9822b", "#8a8a8a", "#5a9a4a")
    plots = ", ".join(f"$d{i} using 1:2 with linespoints lw 2 pt 7 lc rgb '{colours[i]}' "
                      f'title "{legend}"' for i, legend in enumerate(series))
    if wanted:
        blocks += block("wanted", [f"{x} {y}" for x, y in wanted.items()])
        plots += (", $wanted using ($1-0.15):2:(0.3):(0) with vectors nohead lw 3 "
                  "lc rgb '#c03030' title 'target: at most'")
    draw(path, blocks + f"""
set title "{title}"
set xlabel "{xlabel}"
set ylabel "{ylabel}"
set yrange [0:*]
set offsets graph 0.03, graph 0.03, graph 0.15, 0
set key top left
{more}
plot {plots}
""")


def latency(path, f):
    """Percentiles of each way to learn of a message."""
    at = ("p10", "median", "p90", "p99", "max")
    tics = ", ".join(f'"{name}" {i}' for i, name in enumerate(at))
    series = {}
    for event, legend in (("in_create", "IN_CREATE"), ("in_close_write", "IN_CLOSE_WRITE"),
                          ("next", "read of .next")):
        values = [f.get(f"latency/{event}_{name}") for name in at]
        if None not in values:
            series[legend] = {i: v / 1000 for i, v in enumerate(values)}
    lines(path, "From close() on one mount to another mount's event, and to its .next",
          "of all messages", "milliseconds, logarithmic", series,
          f"set xtics ({tics})\nset logscale y\nset yrange [*:*]\nset key bottom right",
          {1: 2, 3: 10})


def resources(path, f):
    rows, tics = [], []
    subjects = [s for s in SUBJECTS if f.get(f"cpu/consume/{s}/100") is not None]
    for place, subject in enumerate(subjects):
        y = len(subjects) - place
        label = label_of("consume", subject)
        server = f.get(f"cpu/consume/{subject}/100")
        client = f.get(f"cpu-client/consume/{subject}/100")
        tics.append(f'"{label}" {y}')
        rows.append(f"{y} {server} {server + client} {colour_of(subject)} "
                    f"{LIGHTER[colour_of(subject)]}")
    if not rows:
        return
    draw(path, block("d", rows) + f"""
set title "CPU seconds per 10,000 consumed messages of 100 bytes\\ndark: the server, light: its client"
set xrange [0:*]
set yrange [0.3:{len(subjects) + 0.7}]
set ytics ({', '.join(tics)}) scale 0
set style fill solid 1 noborder
unset key
set grid noytics
plot $d using 2:1:(0):2:($1-0.3):($1+0.3):4 with boxxyerror lc rgb variable, \\
     $d using 3:1:2:3:($1-0.3):($1+0.3):5 with boxxyerror lc rgb variable
""", 180 + 46 * len(subjects))


def draw_all(out, f):
    def at(name):
        return os.path.join(out, name + ".png")
    bars(at("consume"), f, "consume", "Consume: list, read, delete")
    bars(at("enqueue-1"), f, "enqueue1", "Enqueue, one writer")
    bars(at("enqueue-16"), f, "enqueue16", "Enqueue, 16 writers at once")
    bars(at("shell"), f, "loop", "Shell loop: list, read, delete")
    bars(at("shell-put"), f, "loop-put", "Shell loop: write")
    latency(at("latency"), f)
    lines(at("depth"), "Cost of a message by how many are waiting", "messages waiting",
          "microseconds per message",
          {"consume": f.family("depth-consume"), "enqueue, 16 writers": f.family("depth-enqueue")},
          "set logscale x\nset format x '%.0f'")
    lines(at("consumers"), "Messages consumed per second, on one mount", "consumers",
          "messages per second",
          {name: {k: 1e6 / us for k, us in f.family(f"consumers-{mode}").items()}
           for mode, name in (("take", "names from .next"), ("compete", "all list, and compete"))},
          "set logscale x 2")
    resources(at("cpu"), f)
