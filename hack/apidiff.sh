#!/bin/sh
# Compares the API of the promised packages with another state of the repository, and
# fails if a change breaks users: hack/apidiff.sh [REVISION]
# Without a revision, the last tag is the other state.
set -eu
cd "$(dirname "$0")/.."
base=${1:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
if [ -z "$base" ]; then
	echo "apidiff: nothing is released yet, because there is no tag. To compare with a revision: make apidiff BASE=<revision>"
	exit 0
fi
root=$PWD
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
mkdir "$before/tree"
git archive "$base" | tar -xf - -C "$before/tree"

apidiff() {
	go tool -modfile="$root/hack/tools/go.mod" apidiff "$@"
}

broken=
packages=$(go run ./hack/api -list)
for package in $packages; do
	folder=${package#github.com/kopf-go/kopf/}
	if [ ! -d "$before/tree/$folder" ]; then
		echo "== $package is new"
		continue
	fi
	(cd "$before/tree" && apidiff -w "$before/export" "$package")
	changes=$(apidiff "$before/export" "$package")
	[ -z "$changes" ] || printf '== %s\n%s\n' "$package" "$changes"
	case $changes in *"Incompatible changes:"*) broken=1 ;; esac
done

# The record at the base names the packages that were promised then.
for record in $(git ls-tree --name-only "$base" api/ | sed -n 's|^api/\(.*\)\.txt$|\1|p'); do
	package=github.com/kopf-go/kopf/pkg/$(echo "$record" | tr . /)
	case " $(echo $packages) " in
	*" $package "*) ;;
	*) echo "== $package is gone" && broken=1 ;;
	esac
done

if [ -n "$broken" ]; then
	echo "apidiff: changes since $base break users" >&2
	exit 1
fi
echo "apidiff: no change since $base breaks users"
