// Command api records the API of the packages that users may rely on, as text: one
// file per package in the folder api, with all signatures and without comments. A
// change of the API so shows in the diff of the commit that makes it.
//
//	go run ./hack/api        # write the record: make api
//	go run ./hack/api -check # fail if the record differs from the code: make verify
//	go run ./hack/api -list  # print the import paths of the packages
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/hack/source"
)

func main() {
	check := flag.Bool("check", false, "compare the record with the code, and write nothing")
	list := flag.Bool("list", false, "print the import paths of the packages, and write nothing")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *check, *list); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, check, list bool) error {
	root, err := assets.Root()
	if err != nil {
		return err
	}
	tree, err := source.Load(ctx, root, "./pkg/...")
	if err != nil {
		return err
	}
	if list {
		for _, pkg := range tree.Promised() {
			_, _ = fmt.Fprintln(out, pkg.Types.Path())
		}
		return nil
	}
	record := map[string]string{}
	for _, pkg := range tree.Promised() {
		record[fileOf(pkg)] = describe(pkg)
	}
	folder := filepath.Join(root, "api")
	if !check {
		return store(folder, record)
	}
	return compare(out, folder, record)
}

// errUnrecorded is the error for a record that differs from the code.
var errUnrecorded = errors.New("the record of the API differs from the code: run make api, and commit what it changes")
