#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# worker.sh NAME MESSAGE...: a handler script. Reads the messages with one cat
# (into NAME.out), creates NAME.ready, then carries out what comes by the fifo
# NAME.fifo, a line at a time: what it says in NAME.said, its status in NAME.done.
name=$1
shift
cat "$@" > "$name.out" || exit 9
: > "$name.ready"
while read -r order < "$name.fifo"; do
	eval "$order" > "$name.said" 2>&1
	echo $? > "$name.done.part"
	mv "$name.done.part" "$name.done"
done
