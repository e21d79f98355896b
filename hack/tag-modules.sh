#!/bin/sh
# Tags the modules in folders of this repository that users import, for a released version, and prints the
# tags: hack/tag-modules.sh v1.2.3
# Each tag has a commit in which the module requires that version of the library. In the branches, it requires none,
# and uses the folder.
set -eu
version=$1
git rev-parse --quiet --verify "refs/tags/$version" >/dev/null || { echo "tag-modules: there is no tag $version" >&2 && exit 1; }

tree=$(mktemp -d)
trap 'git worktree remove --force "$tree"' EXIT
git worktree add --quiet --detach "$tree" "$version"
for module in otelkopf; do
	git -C "$tree" checkout --quiet --detach "$version"
	go mod edit -require="github.com/kopf-go/kopf@$version" "$tree/$module/go.mod"
	git -C "$tree" commit --quiet --message "Require the version $version of the library in $module" -- "$module/go.mod"
	git -C "$tree" tag "$module/$version"
	echo "$module/$version"
done
