#!/bin/sh
# Handles deletions. The exit status 75 asks for another attempt in a minute; any other but 0 is an error.
echo "Gone: $KOPF_CALL_NAME." >&2
