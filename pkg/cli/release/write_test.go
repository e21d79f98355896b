package release

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/storage"
)

// patches records the patches of a client, and answers the first ones with errors.
func patches(client *fake.FakeDynamicClient, answers ...error) *[]string {
	var sent []string
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, _ := action.(clienttesting.PatchAction)
		sent = append(sent, strings.TrimSpace(action.GetSubresource()+" "+string(patch.GetPatch())))
		if n := len(sent); n <= len(answers) && answers[n-1] != nil {
			return true, nil, answers[n-1]
		}
		return false, nil, nil
	})
	return &sent
}

var (
	thing         = schema.GroupResource{Group: "example.com", Resource: "things"}
	conflict      = apierrors.NewConflict(thing, "one", errors.New("changed"))
	forbidden     = apierrors.NewForbidden(thing, "one", errors.New("no"))
	errUnanswered = errors.New("the connection was closed")
	throttled     = apierrors.NewTooManyRequests("later", 0)
	isGone        = apierrors.NewNotFound(thing, "one")
)

func TestAnObjectIsWritten(t *testing.T) {
	const status = `{"metadata":{"resourceVersion":"1","annotations":{` + base + `}},"status":{"kopf":{"progress":{"fn":{"retries":1}}}}}`
	without := `{"metadata":{"annotations":{` + removed("fn") + `,` + removed("last-handled-configuration") + `},"finalizers":[],"resourceVersion":"1"}}`
	tests := map[string]struct {
		resource selector.Resource
		object   string
		abandon  bool
		answers  []error
		sent     []string // the first ones
		count    int      // of all; 0: those
		want     ResourceReport
	}{
		"at once":              {things, traced, false, nil, []string{without}, 0, ResourceReport{Released: 1, Finalizers: 1}},
		"after a conflict":     {things, traced, false, []error{conflict}, []string{without, without}, 0, ResourceReport{Released: 1, Finalizers: 1}},
		"after no answer":      {things, traced, false, []error{errUnanswered}, []string{without, without}, 0, ResourceReport{Released: 1, Finalizers: 1}},
		"when it is throttled": {things, traced, false, []error{throttled}, []string{without, without}, 0, ResourceReport{Released: 1, Finalizers: 1}},
		"unless it may not be": {things, traced, false, []error{forbidden}, []string{without}, 0, ResourceReport{Failed: 1}},
		"unless others always change it": {
			things, traced, false,
			[]error{conflict, conflict, conflict, conflict, conflict, conflict, conflict, conflict},
			[]string{without},
			attempts,
			ResourceReport{Failed: 1},
		},
		"not without traces":              {things, `{}`, false, nil, nil, 0, ResourceReport{Others: 1}},
		"not with the progress of others": {things, `{"metadata":{"annotations":{` + foreign + `,` + base + `}}}`, false, nil, nil, 0, ResourceReport{Failed: 1}},
		"not while its deletion waits": {
			things, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["` + finalizer + `"]}}`, false,
			nil, nil, 0,
			ResourceReport{HeldCount: 1},
		},
		"while its deletion waits, on request": {
			things, `{"metadata":{"resourceVersion":"1","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["` + finalizer + `"]}}`, true,
			nil,
			[]string{`{"metadata":{"finalizers":[],"resourceVersion":"1"}}`},
			0,
			ResourceReport{Released: 1, Finalizers: 1, Abandoned: 1},
		},
		"first the status, where it is a subresource": {things, status, false, nil, []string{
			`status {"metadata":{"resourceVersion":"1"},"status":{"kopf":null}}`,
			`{"metadata":{"annotations":{` + removed("last-handled-configuration") + `},"resourceVersion":"1"}}`,
		}, 0, ResourceReport{Released: 1}},
		"not the rest, if the status cannot be": {things, status, false, []error{forbidden}, []string{
			`status {"metadata":{"resourceVersion":"1"},"status":{"kopf":null}}`,
		}, 0, ResourceReport{Failed: 1}},
		"at once, where the status is no subresource": {bare, status, false, nil, []string{
			`{"metadata":{"annotations":{` + removed("last-handled-configuration") + `},"resourceVersion":"1"},"status":{"kopf":null}}`,
		}, 0, ResourceReport{Released: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				obj := parse(t, test.resource, "one", test.object)
				r, client := newReleaser(t, obj)
				r.AbandonDeletions = test.abandon
				sent := patches(client, test.answers...)
				w := &writer{Releaser: r, resource: r.resources[0], finder: r.finder(r.resources[0])}
				w.resource.Resource = test.resource
				w.object(t.Context(), obj)
				if n := len(test.sent); len(*sent) < n || strings.Join((*sent)[:n], "\n") != strings.Join(test.sent, "\n") || len(*sent) != max(n, test.count) {
					t.Errorf("sent:\n%s\nwant:\n%s", strings.Join(*sent, "\n"), strings.Join(test.sent, "\n"))
				}
				got := w.report
				if got.Objects != 1 {
					t.Errorf("%d objects are counted", got.Objects)
				}
				got.Objects, got.Held, got.Errors = 0, nil, nil
				if text(t, got) != text(t, test.want) {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
			})
		})
	}
}

// An object that has gone was released by the last write, if that was not answered; otherwise,
// others have deleted it.
func TestAnObjectDisappears(t *testing.T) {
	another := parse(t, things, "one", `{"metadata":{"uid":"u-2","resourceVersion":"7"}}`)
	for name, test := range map[string]struct {
		answer   error
		replaced bool
		released int
	}{
		"deleted by others":                {isGone, false, 0},
		"deleted by others, and new":       {conflict, true, 0},
		"by a write without an answer":     {errUnanswered, false, 1},
		"by such a write, and it is a new": {errUnanswered, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, client := newReleaser(t)
				if test.replaced {
					if err := client.Tracker().Add(another); err != nil {
						t.Fatal(err)
					}
				}
				sent := patches(client, test.answer)
				w := &writer{Releaser: r, resource: r.resources[0], finder: r.finder(r.resources[0])}
				w.object(t.Context(), parse(t, things, "one", traced))
				if w.report.Released != test.released || w.report.Failed != 0 || len(*sent) != 1 {
					t.Errorf("got %+v after %q", w.report, *sent)
				}
			})
		})
	}
}

// If the object can neither be written nor read, that is said.
func TestAnObjectCannotBeReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, client := newReleaser(t)
		patches(client, conflict)
		client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
		w := &writer{Releaser: r, resource: r.resources[0], finder: r.finder(r.resources[0])}
		w.object(t.Context(), parse(t, things, "one", traced))
		if w.report.Failed != 1 || !strings.Contains(w.report.Errors[0], "default/one: ") || !strings.Contains(w.report.Errors[0], "forbidden") {
			t.Errorf("got %+v", w.report)
		}
	})
}

func TestAReleaseEndsWhenNothingCanBeWritten(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 100 {
		objects = append(objects, parse(t, things, "o"+string(rune('a'+i/26))+string(rune('a'+i%26)), traced))
	}
	r, client := newReleaser(t, objects...)
	client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
	report, err := r.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the objects of things.example.com cannot be written: ") {
		t.Errorf("got %v", err)
	}
	if n := report.Failed(); n < maxFailures || n > maxFailures+parallel {
		t.Errorf("%d objects were tried", n)
	}
}

func TestOnlySomeErrorsAreRepeated(t *testing.T) {
	for err, want := range map[error]bool{
		conflict: true, errUnanswered: true, throttled: true, isGone: true, forbidden: false, &ForeignError{}: false, context.Canceled: true,
		apierrors.NewInternalError(errors.New("x")): true, apierrors.NewServiceUnavailable("x"): true,
		apierrors.NewBadRequest("x"): false, apierrors.NewTimeoutError("x", 0): true,
	} {
		if isRepeatable(err) != want {
			t.Errorf("%v: want %v", err, want)
		}
	}
}

// external is a storage outside of the objects, whose first attempts fail.
type external struct {
	storage.Progress
	failures int
	calls    *int
}

func (e external) Erase(_ context.Context, body *object.Body) error {
	if body.UID() != "u-1" {
		return errors.New("it is not the object that was released")
	}
	*e.calls++
	if *e.calls <= e.failures {
		return errors.New("the database is down")
	}
	return nil
}

func TestStoragesOutsideOfTheObjectsErase(t *testing.T) {
	const deleting = `{"metadata":{"resourceVersion":"1","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["` + finalizer + `"]}}`
	for name, test := range map[string]struct {
		object   string
		abandon  bool
		failures int
		calls    int
		failed   int
	}{
		"after the write":                         {traced, false, 0, 1, 0},
		"without a write":                         {`{}`, false, 0, 1, 0},
		"after failures":                          {traced, false, 3, 4, 0},
		"unless all attempts fail":                {traced, false, attempts, attempts, 1},
		"not while a deletion waits":              {deleting, false, 0, 0, 0},
		"while a deletion waits, on request":      {deleting, true, 0, 1, 0},
		"not with the progress of other handlers": {`{"metadata":{"annotations":{` + foreign + `}}}`, false, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				obj := parse(t, things, "one", test.object)
				r, client := newReleaser(t, obj)
				r.AbandonDeletions = test.abandon
				patches(client)
				calls := 0
				r.Settings.Persistence.Progress = storage.MultiProgress{storage.AnnotationsProgress{}, external{storage.AnnotationsProgress{}, test.failures, &calls}}
				w := &writer{Releaser: r, resource: r.resources[0], finder: r.finder(r.resources[0])}
				w.object(t.Context(), obj)
				if calls != test.calls || w.report.Failed != test.failed {
					t.Errorf("%d calls, and the report %+v", calls, w.report)
				}
			})
		})
	}
}
