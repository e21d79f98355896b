#!/bin/sh
# Fuzzes all fuzz targets of the packages, one after the other, because the go
# command takes one at a time: hack/fuzz.sh TIME PACKAGE...
set -eu
time=$1
shift
for package in $(go list "$@"); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $target of $package"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
	done
done
