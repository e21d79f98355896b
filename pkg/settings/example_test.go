package settings_test

import (
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Fields that are not set have their defaults.
func ExampleSettings() {
	var s settings.Settings
	s.Execution.Backoff = backoff.Exponential(time.Second, 10*time.Minute)
	s = s.WithDefaults()
	fmt.Println(s.Execution.Backoff, s.Execution.Workers, s.Persistence.Finalizer)
	// Output: 1s to 10m0s 100 kopf.zalando.org/KopfFinalizerMarker
}

func ExampleSettings_Validate() {
	var s settings.Settings
	s.Execution.Workers = -1
	s.Execution.Backoff = backoff.Constant(-time.Minute)
	fmt.Println(s.Validate())
	// Output:
	// settings.Execution.Backoff: the backoff -1m0s is negative
	// settings.Execution.Workers is negative: -1
}

// The API server sends only some pods. The selectors of all keys that are for a resource are joined.
func ExampleWatching() {
	var s settings.Settings
	s.Watching.LabelSelectors = map[string]string{"pods": "app in (web,db)", "*": "!example.com/ignored"}
	s.Watching.FieldSelectors = map[string]string{"pods": "status.phase!=Succeeded"}
	fmt.Println(s.Validate())
	pods := selector.Resource{Version: "v1", Plural: "pods", Kind: "Pod"}
	fmt.Println(s.Watching.Selectors(pods))
	// Output:
	// <nil>
	// !example.com/ignored,app in (web,db) status.phase!=Succeeded
}

// The operator serves a namespace by its name, and all that have a label, as long as they have it.
func ExampleScope() {
	var s settings.Settings
	s.Scope.Namespaces = []string{"production", "labels:team in (web,app)"}
	fmt.Println(s.Validate())
	served := selector.Namespaces(s.Scope.Namespaces)
	fmt.Println(served.Match("production", nil), served.Match("shop", map[string]string{"team": "web"}), served.Match("shop", nil))
	// Output:
	// <nil>
	// true true false
}

func ExampleFibonacci() {
	fmt.Println(settings.Fibonacci(time.Second, 10*time.Second))
	// Output: [1s 2s 3s 5s 8s]
}
