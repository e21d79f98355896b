// Package builtin lists the resources that every cluster has, with their names and scopes, for those
// who ask no cluster: the API server of the test kit, and the manifests of an operator.
package builtin

import (
	_ "embed"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// table lists the built-in resources, as an API server of Kubernetes reports them. Reviews
// and resources of aggregated servers are not in it.
//
//go:embed resources.tsv
var table string

// Resource is a line of the table.
type Resource struct {
	Version       schema.GroupVersion
	Plural, Kind  string
	Namespaced    bool
	ShortNames    []string
	Categories    []string
	Subresources  []string
	HasGeneration bool
}

// Resources returns the built-in resources, each in one version.
func Resources() []Resource {
	var found []Resource
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		found = append(found, Resource{
			Version: schema.GroupVersion{Group: strings.Trim(cells[0], "-"), Version: cells[1]},
			Plural:  cells[2], Kind: cells[3], Namespaced: cells[4] == "Namespaced",
			ShortNames: listIn(cells[5]), Categories: listIn(cells[6]), Subresources: listIn(cells[7]),
			HasGeneration: cells[8] == "yes",
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
