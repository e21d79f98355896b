package discovery

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
)

// document is one of the two large documents, as it was sent before.
type document struct {
	of   []*resource.Resource
	data []byte
}

// prepared are the documents for the core group, and for all others. Tests start many servers
// with the same resources.
//
//nolint:gochecknoglobals // the documents depend on the resources only
var prepared struct {
	sync.Mutex
	core, others document
}

// aggregated returns the text of a document with everything in it.
func aggregated(all []*resource.Resource, isCore bool) ([]byte, error) {
	kept := &prepared.others
	if isCore {
		kept = &prepared.core
	}
	prepared.Lock()
	defer prepared.Unlock()
	if slices.Equal(kept.of, all) {
		return kept.data, nil
	}
	data, err := json.Marshal(aggregate(all, isCore))
	if err == nil {
		*kept = document{of: slices.Clone(all), data: data}
	}
	return data, err
}
