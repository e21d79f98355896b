package usercode

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/tracing"
)

// bench is an API server with an operator, in virtual time.
type bench struct {
	*testing.T
	config   *rest.Config
	client   client.Client
	declare  func() *kopf.Registry
	settings []func(*kopf.Settings)
	log      journal
	id       string          // in an annotation of all objects
	scheme   *runtime.Scheme // nil: the default
	// noConfig leaves the connection to connect, or to login handlers.
	noConfig bool
	connect  func(context.Context) (*rest.Config, error)
	tracer   tracing.Tracer // nil: none

	operator *kopf.Operator
	cancel   context.CancelFunc
	ended    chan error
}

// definitions are those of the resources.
var definitions = sync.OnceValues(func() ([]manifests.Definition, error) {
	return manifests.Require("../../examples/crd", "../../config/crd/kopf.dev")
})

// newBench starts an API server. The operator is not running yet.
func newBench(t *testing.T, declare func() *kopf.Registry, settings ...func(*kopf.Settings)) *bench {
	t.Helper()
	b := &bench{T: t, config: kopftest.NewAPIServer(t).Config(), declare: declare, settings: settings}
	var err error
	if b.client, err = client.New(b.config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	all, err := definitions()
	b.must(err)
	for _, one := range all {
		b.must(b.client.Create(t.Context(), one.DeepCopy()))
	}
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// options returns the options of the operator. Nothing of them needs a network.
func (b *bench) options() kopf.Options {
	o := kopf.Options{Registry: b.declare(), Config: b.config, Logger: b.log.logger(), Scheme: b.scheme, Tracer: b.tracer}
	if b.noConfig {
		o.Config, o.Connect = nil, b.connect
	}
	o.Settings.Name = "example.com"
	o.Settings.Networking.QPS = -1
	o.Settings.Watching.InactivityTimeout = -1
	o.Settings.Peering.Identity = "usercode" // the default identity asks the name service
	for _, change := range b.settings {
		change(&o.Settings)
	}
	return o
}

// begin starts the operator, without waiting for it.
func (b *bench) begin() {
	b.Helper()
	var err error
	b.operator, err = kopf.NewOperator(b.options())
	b.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	operator, ended := b.operator, make(chan error, 1)
	b.cancel, b.ended = cancel, ended
	go func() { ended <- operator.Run(ctx) }()
}

// start starts the operator, and waits until it is ready.
func (b *bench) start() {
	b.Helper()
	b.begin()
	select {
	case <-b.operator.Ready():
	case err := <-b.ended:
		b.Fatalf("the operator has ended: %v", err)
	case <-time.After(time.Hour):
		b.Fatal("the operator is not ready")
	}
}

// stop stops the operator. It returns how long that has taken, and the error of the operator.
func (b *bench) stop() (took time.Duration, err error) {
	b.Helper()
	began := time.Now()
	b.cancel()
	select {
	case err = <-b.ended:
	case <-time.After(24 * time.Hour):
		b.Error("the operator has not stopped within a day")
		err = errors.New("it has not stopped")
	}
	return time.Since(began), err
}

// advance lets time pass.
func (b *bench) advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// example and claim are two kinds of objects.
const (
	example = "KopfExample"
	claim   = "EphemeralVolumeClaim"
)

func (b *bench) object(kind, name string) *unstructured.Unstructured {
	return kopftest.Object(fmt.Sprintf(`{apiVersion: kopf.dev/v1, kind: %s, metadata: {namespace: default, name: %s, labels: {app: sweep}, annotations: {for: %q}}, spec: {size: 1}}`, kind, name, b.id))
}

func (b *bench) create(kind string, names ...string) {
	b.Helper()
	for _, name := range names {
		b.must(b.client.Create(b.Context(), b.object(kind, name)))
	}
}

// resize changes an object.
func (b *bench) resize(kind, name string, size int) {
	b.Helper()
	b.must(b.client.Patch(b.Context(), b.object(kind, name), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"size": %d}}`, size))))
}

func (b *bench) delete(kind, name string) {
	b.Helper()
	b.must(client.IgnoreNotFound(b.client.Delete(b.Context(), b.object(kind, name))))
}

// get returns an object, or nil if there is none.
func (b *bench) get(kind, name string) *unstructured.Unstructured {
	b.Helper()
	found := b.object(kind, name)
	switch err := b.client.Get(b.Context(), client.ObjectKeyFromObject(found), found); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		b.Fatal(err)
	}
	return found
}

// ours is a part of the stacks of the library.
const ours = "github.com/kopf-go/kopf/pkg/"

// bubble is the part of a goroutine's header that names its bubble.
var bubble = regexp.MustCompile(`synctest bubble \d+`)

// expectNoGoroutines expects that nothing runs after the end of the operator.
func (b *bench) expectNoGoroutines() {
	b.Helper()
	time.Sleep(time.Hour) // abandoned goroutines end, too
	synctest.Wait()
	stacks := make([]byte, 4<<20)
	all := strings.Split(string(stacks[:goruntime.Stack(stacks, true)]), "\n\n")
	own := bubble.FindString(all[0])
	for _, stack := range all[1:] {
		header, _, _ := strings.Cut(stack, "\n")
		if bubble.FindString(header) == own && strings.Contains(stack, ours) && !strings.Contains(stack, "testing/synctest.") {
			b.Errorf("a goroutine remains:\n%s", stack)
		}
	}
}

// journal is the log of the operator.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, time.Now().Format(time.TimeOnly)+" "+line)
	}, funcr.Options{})
}

// about returns the lines with all of the texts.
func (j *journal) about(texts ...string) (found []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
lines:
	for _, line := range j.lines {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		found = append(found, line)
	}
	return found
}
