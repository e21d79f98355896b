package resource

import (
	_ "embed"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// table lists the built-in resources, as an API server of Kubernetes reports them. Reviews
// and resources of aggregated servers are not in it.
//
//go:embed builtin.tsv
var table string

// row is a line of the table.
type row struct {
	version       schema.GroupVersion
	plural, kind  string
	namespaced    bool
	shortNames    []string
	categories    []string
	subresources  []string
	hasGeneration bool
}

func rows() []row {
	var found []row
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		found = append(found, row{
			version: schema.GroupVersion{Group: strings.Trim(cells[0], "-"), Version: cells[1]},
			plural:  cells[2], kind: cells[3], namespaced: cells[4] == "Namespaced",
			shortNames: listIn(cells[5]), categories: listIn(cells[6]), subresources: listIn(cells[7]),
			hasGeneration: cells[8] == "yes",
		})
	}
	return found
}

func listIn(cell string) []string {
	if cell == "-" {
		return nil
	}
	return strings.Split(cell, ",")
}
