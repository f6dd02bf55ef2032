#!/bin/sh
# SPDX-License-Identifier: MIT
# loop.sh DIR OUT: the worker script everybody writes, one pass over one glob.
# OUT.done has what it handled, OUT.err what cat said, OUT.bad what must not be.
for f in "$1"/*; do
	if body=$(cat "$f" 2>> "$2.err"); then
		echo "$body" >> "$2.done"
		rm "$f" 2>> "$2.bad"
	fi
done
