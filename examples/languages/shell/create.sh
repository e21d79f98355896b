#!/bin/sh
# Handles new objects. The call is on the standard input, as JSON; simple programs need only the variables.
set -eu
echo "A new object: $KOPF_CALL_NAMESPACE/$KOPF_CALL_NAME." >&2 # the log of the object
if [ "$KOPF_CALL_RETRY" = 0 ]; then
	echo "The first attempt fails." >&2
	echo '{"error": {"message": "try again", "delay": 1}}'
	exit 0
fi
echo '{"result": {"message": "created by a shell"}, "patch": {"metadata": {"labels": {"handled-by": "shell"}}}}'
