#!/bin/sh
# Checks what no test checks. All steps run even if one fails, so that one run shows
# everything that needs a change.
set -u
cd "$(dirname "$0")/.."
failed=

step() {
	what=$1
	shift
	echo "== $what: $*"
	"$@" || failed="$failed, $what"
}

# snapshot prints the hashes of all files that are, or may be, committed.
snapshot() {
	git ls-files --cached --others --exclude-standard | sort | while read -r file; do
		[ ! -f "$file" ] || echo "$(git hash-object -- "$file") $file"
	done
}

# regenerated fails if a generator changes a file. It compares with the files as they
# are, not with the last commit, so that it works in the middle of a change.
regenerated() {
	before=$(mktemp) && after=$(mktemp) || return
	snapshot >"$before"
	make --no-print-directory manifests && snapshot >"$after" && diff "$before" "$after"
	result=$?
	rm -f "$before" "$after"
	[ $result -eq 0 ] || echo "Run make manifests, and commit the changes."
	return $result
}

# built builds a kustomization. Components are built with the kustomizations that use
# them.
built() {
	grep -q '^kind: Component' "$1" ||
		go tool -modfile=hack/tools/go.mod kustomize build "$(dirname "$1")" >/dev/null
}

step "vet" go vet -race ./... # also what only the race detector builds; it needs a C compiler
for module in examples/storage examples/kubebuilder otelkopf test/site/browser hack/tools/alerts hack/tools/chart hack/tools/dist hack/tools/kubebuilder hack/tools/olm; do # separate modules
	step "vet" go -C "$module" vet ./...
done
step "linters and format" make --no-print-directory lint
for module in $(git ls-files --cached --others --exclude-standard '*go.mod'); do
	step "tidy modules" go -C "$(dirname "$module")" mod tidy -diff
done
for kustomization in $(git ls-files --cached --others --exclude-standard '*kustomization.yaml'); do
	step "manifests" built "$kustomization"
done
step "generated files" regenerated
step "workflows" go tool -modfile=hack/tools/actionlint/go.mod actionlint
step "record of the API" go run ./hack/api -check

if [ -n "$failed" ]; then
	echo "verify: failed: ${failed#, }" >&2
	exit 1
fi
echo "verify: passed"
