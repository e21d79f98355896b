#!/bin/sh
# Runs as long as the object exists. SIGTERM asks it to end.
trap 'echo "The daemon ends." >&2; exit 0' TERM
echo "The daemon runs." >&2
while :; do
	sleep 1 &
	wait $! # which a signal interrupts
done
