#!/usr/bin/env bash
# Runs the tests that talk to Kubernetes on the API server of the test kit, except those in
# test/memory.txt. The arguments are flags of go test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export KOPF_TEST_SERVER=memory

failed=0
for suite in test/conformance test/integration/*/; do
	suite=${suite%/}
	excluded=$(awk -v suite="${suite##*/}" '$1 == suite { print $2 }' test/memory.txt)
	if [ "$excluded" = - ]; then
		continue
	fi
	skip=$(sed 's,/,$/^,; s,.*,^&$,' <<<"$excluded" | paste -sd'|')
	go test "$@" ${excluded:+-skip "$skip"} "./$suite" || failed=1
done
exit $failed
