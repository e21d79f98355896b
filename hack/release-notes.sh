#!/bin/sh
# Prints the section of a version in the changelog: hack/release-notes.sh v1.2.3 [FILE]
# Fails if there is none, or if it is not released according to its heading.
set -eu
version=${1#v}
file=${2:-$(dirname "$0")/../CHANGELOG.md}

heading=$(awk -v version="$version" '/^## / && $2 == version' "$file")
case $heading in
"") echo "release-notes: $file has no section for version $version" >&2 && exit 1 ;;
*unreleased*) echo "release-notes: $file still says: $heading" >&2 && exit 1 ;;
esac
awk -v version="$version" '/^## / { inside = ($2 == version); next } inside' "$file"
