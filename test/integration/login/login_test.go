package login

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// operator is a logged-in operator with the calls of its handlers.
type operator struct {
	*issuer
	*login.Credentials
	mu    sync.Mutex
	calls []string // "name=value"
}

func start(t *testing.T) *operator {
	o := &operator{issuer: newIssuer(t)}
	credentials, err := login.New(t.Context(), login.Options{Login: o.issuer.login, Logger: testenv.Logger()})
	o.Expect(err).NotTo(gomega.HaveOccurred())
	o.Credentials = credentials
	t.Cleanup(credentials.Close)
	registry, examples := kopf.NewRegistry(), kopf.Resource("kopf.dev", "v1", "kopfexamples")
	registry.OnCreate(examples, o.handle, kopf.ID("handle"))
	registry.OnUpdate(examples, o.handle, kopf.ID("handle"))
	operators.Start(t, credentials.Config(), o.namespace, registry, func(options *kopf.Options) {
		options.Settings.Queueing.ErrorDelays = []time.Duration{100 * time.Millisecond}
	})
	return o
}

func (o *operator) handle(_ context.Context, c *kopf.Change) error {
	value, _ := c.Spec().String("field")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, c.Name()+"="+value)
	c.SetResult(value)
	return nil
}

// handled returns the calls so far, sorted by name and value.
func (o *operator) handled() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(slices.Values(o.calls))
}

// create creates objects with a value.
func (o *operator) create(number int, value string) (objects []*unstructured.Unstructured) {
	for i := range number {
		object := testenv.NewObject("KopfExample", o.namespace, fmt.Sprintf("object-%02d", i), map[string]any{"field": value})
		o.Expect(cluster.Client().Create(o.t.Context(), object)).To(gomega.Succeed())
		objects = append(objects, object)
	}
	return objects
}

// change gives the objects another value.
func (o *operator) change(objects []*unstructured.Unstructured, value string) {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"field":"`+value+`"}}`))
	for _, object := range objects {
		o.Expect(cluster.Client().Patch(o.t.Context(), object, patch)).To(gomega.Succeed())
	}
}

// reached waits until all objects are handled with a value, and their status contains it.
func (o *operator) reached(objects []*unstructured.Unstructured, value string) {
	o.t.Helper()
	for _, object := range objects {
		o.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.handle", value))
	}
}

// expected returns one call per object and value.
func expected(objects []*unstructured.Unstructured, values ...string) []string {
	var calls []string
	for _, object := range objects {
		for _, value := range values {
			calls = append(calls, object.GetName()+"="+value)
		}
	}
	return slices.Sorted(slices.Values(calls))
}

const many = 20

func TestOperatorContinuesAfterItsTokenIsRevoked(t *testing.T) {
	t.Parallel() // revoking takes time
	o := start(t)
	objects := o.create(many, "before")
	o.reached(objects, "before")
	for _, value := range []string{"first", "second"} {
		o.revoke()
		o.change(objects, value)
		o.reached(objects, value)
	}
	o.Expect(o.count()).To(gomega.Equal(3), "one login for all requests")
	o.Expect(o.handled()).To(gomega.Equal(expected(objects, "before", "first", "second")))
	o.Expect(o.Check()).To(gomega.Succeed())
}

func TestChangesDuringALoginAreHandledAfterwards(t *testing.T) {
	t.Parallel() // revoking takes time
	o := start(t)
	objects := o.create(many, "before")
	o.reached(objects, "before")
	open := o.shut()
	t.Cleanup(open)
	o.revoke()
	o.change(objects, "meanwhile")
	o.Eventually(o.count).Should(gomega.Equal(2), "the login is going on")
	o.dialer.CloseAll() // the watches break, and also wait
	o.change(objects, "later")
	open()
	o.reached(objects, "later")
	o.Expect(o.count()).To(gomega.Equal(2))
	o.Expect(o.handled()).To(gomega.ContainElements(expected(objects, "later")))
}

func TestOperatorRecoversFromFailedLogins(t *testing.T) {
	t.Parallel() // revoking takes time
	o := start(t)
	objects := o.create(many, "before")
	o.reached(objects, "before")
	o.refuse(true)
	o.revoke()
	o.change(objects, "meanwhile")
	o.Eventually(o.Check).Should(gomega.MatchError(gomega.ContainSubstring("has already rejected (401)")))
	o.Eventually(o.count).Should(gomega.BeNumerically(">=", 3), "it is tried again")
	o.refuse(false)
	o.reached(objects, "meanwhile")
	o.Expect(o.handled()).To(gomega.Equal(expected(objects, "before", "meanwhile")), "no handler is called again for what could not be written")
	o.Eventually(o.Check).Should(gomega.Succeed())
}
