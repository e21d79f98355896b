package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// withOperator runs a test of the operator with an empty file, in virtual time.
func withOperator(t *testing.T, test func(t *testing.T, h *kopftest.Harness, states file)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	synctest.Test(t, func(t *testing.T) {
		states, err := openFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer states.db.Close()
		h := kopftest.New(t, func() *kopf.Registry {
			r := kopf.NewRegistry()
			declare(r, states)
			return r
		}, kopftest.CRDs("../crd/kopfexamples.yaml"), kopftest.Settings(states.use))
		test(t, h, states)
	})
}

func newObject(name string) *unstructured.Unstructured {
	o := kopftest.Object(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {namespace: ns}, spec: {field: value}}`)
	o.SetName(name)
	return o
}

// expectFile expects that the file has data about the objects, and no others.
func expectFile(t *testing.T, states file, objects ...client.Object) {
	t.Helper()
	var got []string
	err := states.db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(uid []byte, _ *bbolt.Bucket) error {
			got = append(got, string(uid))
			return nil
		})
	})
	if err != nil || len(got) != len(objects) {
		t.Fatalf("the file has the uids %q, and %d objects are expected: %v", got, len(objects), err)
	}
	for _, one := range objects {
		if text, err := states.get(t.Context(), one.GetUID(), objectKey); text == nil {
			t.Errorf("the file has the uids %q, and not that of %s: %v", got, one.GetName(), err)
		}
	}
}

func TestTheFileHasTheStateInPlaceOfTheObject(t *testing.T) {
	withOperator(t, func(t *testing.T, h *kopftest.Harness, states file) {
		one := newObject("one")
		h.Create(one)
		h.Settle()
		h.Restart() // before the retry
		h.Advance(time.Minute)
		h.Patch(one, `{"spec": {"field": "changed"}}`)
		h.Advance(time.Minute)
		if got := h.Get(one); len(got.GetAnnotations()) > 0 {
			t.Errorf("the object has the annotations %v", got.GetAnnotations())
		}
		if creations, updates := h.Calls("createFn"), h.Calls("updateFn"); len(creations) != 2 || len(updates) != 1 {
			t.Errorf("got %v and %v", creations, updates)
		}
		expectFile(t, states, one)
	})
}

func TestTheFileForgetsObjectsThatAreGone(t *testing.T) {
	withOperator(t, func(t *testing.T, h *kopftest.Harness, states file) {
		one, two := newObject("one"), newObject("two")
		h.Create(one)
		h.Create(two)
		h.Advance(time.Minute)
		h.Delete(one)
		h.Settle()
		expectFile(t, states, two)

		// It inherits nothing.
		again := newObject("one")
		h.Create(again)
		h.Advance(time.Minute)
		if calls := h.Calls("createFn"); len(calls) != 6 {
			t.Errorf("got %v", calls)
		}
		expectFile(t, states, again, two)
	})
}

func TestTheFileForgetsObjectsThatHaveDisappearedMeanwhile(t *testing.T) {
	withOperator(t, func(t *testing.T, h *kopftest.Harness, states file) {
		gone, replaced, kept := newObject("gone"), newObject("replaced"), newObject("kept")
		h.Create(gone)
		h.Create(replaced)
		h.Create(kept)
		h.Advance(time.Minute)
		h.Stop()
		h.Delete(gone)
		h.Delete(replaced)
		again := newObject("replaced")
		h.Create(again)
		expectFile(t, states, gone, replaced, kept)
		h.Start()
		h.Advance(time.Minute)
		expectFile(t, states, again, kept)
	})
}

// Otherwise, the next operator would take the object for a new one.
func TestTheFileKeepsObjectsThatCannotBeRead(t *testing.T) {
	withOperator(t, func(t *testing.T, h *kopftest.Harness, states file) {
		one := newObject("one")
		h.Create(one)
		h.Advance(time.Minute)
		h.Delete(one)
		h.Settle()
		two := newObject("two")
		h.Create(two)
		h.Advance(time.Minute)
		broken := unreadable{h.Client()}
		if forgotten, err := states.sweep(t.Context(), broken); forgotten != 0 || err != nil {
			t.Errorf("%d objects are forgotten: %v", forgotten, err)
		}
		expectFile(t, states, two)
	})
}

// unreadable is a cluster that does not answer.
type unreadable struct{ client.Reader }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("the connection was closed")
}
