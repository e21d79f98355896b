package main

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/kopf-go/kopf/hack/source"
)

// api counts what users must learn.
type api struct {
	// facade is the number of exported names of the facade, without methods and fields.
	facade int
	// recorded is the number of lines of the API record.
	recorded int
}

const facadePackage = "pkg/kopf"

func measureAPI(tree *source.Tree) (api, error) {
	var found api
	if facade := tree.Package(facadePackage); facade != nil {
		scope := facade.Types.Scope()
		for _, name := range scope.Names() {
			if scope.Lookup(name).Exported() {
				found.facade++
			}
		}
	}
	records, err := filepath.Glob(filepath.Join(tree.Dir, "api", "*.txt"))
	if err != nil {
		return api{}, err
	}
	for _, name := range records {
		content, err := os.ReadFile(name)
		if err != nil {
			return api{}, err
		}
		found.recorded += bytes.Count(content, []byte("\n"))
	}
	return found, nil
}
