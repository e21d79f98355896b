package resource

import (
	"encoding/json"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// prepared are the resources of the definitions that were used before: tests start many servers
// with the same ones, and compiling their schemas takes longer than anything else in a start.
//
//nolint:gochecknoglobals // resources have no state, as built-in ones
var prepared = struct {
	sync.Mutex
	of map[string][]*Resource
}{of: map[string][]*Resource{}}

// maxPrepared limits the memory of processes with ever new definitions.
const maxPrepared = 100

// Custom returns the served versions of a custom resource. They have no state.
func Custom(definition *apiextensionsv1.CustomResourceDefinition) ([]*Resource, error) {
	text, err := json.Marshal(definition.Spec)
	if err != nil {
		return nil, err
	}
	key := definition.Name + string(text)
	prepared.Lock()
	known, ok := prepared.of[key]
	prepared.Unlock()
	if ok {
		return known, nil
	}
	made, err := newCustomResources(definition)
	if err != nil {
		return nil, err
	}
	prepared.Lock()
	defer prepared.Unlock()
	if len(prepared.of) >= maxPrepared {
		clear(prepared.of)
	}
	prepared.of[key] = made
	return made, nil
}
