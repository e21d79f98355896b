package kopftest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// Option configures a Harness.
type Option interface{ apply(*options) }

type options struct {
	definitions []string
	objects     []client.Object
	scheme      *runtime.Scheme
	settings    []func(*kopf.Settings)
	trial       *trial // of a sweep
}

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

// CRDs installs the custom resource definitions in YAML and JSON files: in the named files, and in
// the named directories and all below. Other content is ignored.
func CRDs(paths ...string) Option {
	return optionFunc(func(o *options) { o.definitions = append(o.definitions, paths...) })
}

// Objects creates objects before the operator starts. Missing namespaces are created.
func Objects(objects ...client.Object) Option {
	return optionFunc(func(o *options) { o.objects = append(o.objects, objects...) })
}

// Scheme has the Go types of typed handlers and of the objects in the test. Default: the
// built-in types of Kubernetes.
func Scheme(scheme *runtime.Scheme) interface {
	Option
	CallOption
} {
	return schemeOption{scheme}
}

type schemeOption struct{ scheme *runtime.Scheme }

func (s schemeOption) apply(o *options) { o.scheme = s.scheme }

// Settings changes the settings of the operator. They are the defaults, except for what makes
// no sense in memory: there are no limits of requests, no checks of silent connections, no
// listeners, no leader election, and no peering. Webhook configurations are managed.
func Settings(change func(*kopf.Settings)) Option {
	return optionFunc(func(o *options) { o.settings = append(o.settings, change) })
}
