package write

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/cause"
)

func TestAReadThatFindsNothingEndsThePass(t *testing.T) {
	f := newFixture(t, m{})
	cached := f.cached()
	f.faults, f.readErr = []fault{{err: errDown}}, errDown
	f.edit("a", set("x", "spec", "a"))
	_ = f.writeFails(Update{})
	f.readErr, f.object = nil, nil
	f.sent()
	f.nextPass()
	fresh, err := f.Refresh(t.Context(), cached)
	f.expect("fresh, error, gone", []any{fresh, err, f.state.Gone()}, []any{Freshness{}, nil, true})
	f.expectSent("GET, LIST")
	f.expect("finished", f.done["a"], 1)
}

// A state knows the uid of its object from the first pass on.
func TestAnObjectWithoutAKnownUIDIsRead(t *testing.T) {
	for name, exists := range map[string]bool{"it exists": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			cached := f.cached()
			*f.state = State{mustRead: true}
			if !exists {
				f.object = nil
			}
			f.nextPass()
			fresh, err := f.Refresh(t.Context(), cached)
			f.expect("fresh, error, gone", []any{fresh.Fresh, err, f.state.Gone()}, []any{exists, nil, !exists})
		})
	}
}

func TestAnObjectWithoutAKnownUIDIsNotGoneIfItIsListed(t *testing.T) {
	f := newFixture(t, m{})
	f.state.Reset("")
	err := f.confirmGone(t.Context(), answer(http.StatusNotFound))
	f.expect("error, gone", []any{err != nil && strings.Contains(err.Error(), "but lists it"), f.state.Gone()}, []any{true, false})
}

func TestA404WithoutDetailsNamesNoObject(t *testing.T) {
	if namesObject(&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound}}, "one") {
		t.Error("it counts as a response about the object")
	}
}

func TestAnObjectThatWasSeenGoneIsNotBackWithoutALaterVersion(t *testing.T) {
	f := newFixture(t, m{})
	*f.state = State{}
	f.state.SeenGone(true)
	f.nextPass()
	fresh, err := f.Refresh(t.Context(), f.cached())
	f.expect("fresh, error, gone", []any{fresh, err, f.state.Gone()}, []any{Freshness{}, nil, true})
	f.state.SeenGone(false)
	f.expect("gone", f.state.Gone(), false)
	f.state.SeenMissing()
	f.expect("gone", f.state.Gone(), true)
}

func TestHasEdits(t *testing.T) {
	f := newFixture(t, m{})
	f.expect("none", f.state.HasEdits(), false)
	f.edit("a", set("x", "spec", "a"))
	f.expect("one", f.state.HasEdits(), true)
}

// A cluster that was restored from a backup has lower versions. Whatever shows them first, the watch
// must follow, and nothing that was known holds anymore.
func TestAnAnswerOfAnotherHistoryIsReported(t *testing.T) {
	tests := map[string]struct {
		floor    string
		happens  func(f *fixture)
		reported bool
	}{
		"a read of an earlier version":  {"1000", func(f *fixture) { _, _ = f.ReadLive(t.Context()) }, true},
		"a read of the known version":   {"", func(f *fixture) { _, _ = f.ReadLive(t.Context()) }, false},
		"a write of an earlier version": {"1000", func(f *fixture) { f.edit("a", set("x", "spec", "a")); f.write(Update{}) }, true},
		"a write of the next version":   {"", func(f *fixture) { f.edit("a", set("x", "spec", "a")); f.write(Update{}) }, false},
		"a read of another object":      {"1000", func(f *fixture) { f.replace(); _, _ = f.ReadLive(t.Context()) }, true},
		"a list after a read":           {"1000", func(f *fixture) { f.object = nil; _, _ = f.ReadLive(t.Context()) }, true},
		"a list of the known version":   {"", func(f *fixture) { f.object = nil; _, _ = f.ReadLive(t.Context()) }, false},
		"a list of a vanished object":   {"1000", func(f *fixture) { f.object = nil; _, _ = f.FindAgain(t.Context(), "u-1") }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, reported := newFixture(t, m{}), 0
			f.target.Rewound = func() { reported++ }
			f.refresh(f.cached())
			if test.floor != "" {
				f.state.NotOlderThan(test.floor)
			}
			test.happens(f)
			f.expect("reported", reported, map[bool]int{true: 1}[test.reported])
		})
	}
}

func TestAnotherHistoryNeedsNoReceiver(t *testing.T) {
	f := newFixture(t, m{})
	f.state.NotOlderThan("1000")
	fresh, err := f.ReadLive(t.Context())
	f.expect("fresh, error", []any{fresh.Fresh, err}, []any{true, nil})
}

func TestNothingIsKnownOfAnotherHistory(t *testing.T) {
	f := newFixture(t, m{})
	cached := f.cached()
	f.state.NotOlderThan("1000")
	f.state.SeenGone(true)
	f.state.deleted = true
	f.nextPass()
	fresh, err := f.Refresh(t.Context(), cached)
	f.expect("fresh, error", []any{fresh.Fresh, err}, []any{false, nil})
	f.state.BeginAnew()
	f.nextPass()
	fresh, err = f.Refresh(t.Context(), cached)
	f.expect("fresh, error", []any{fresh.Fresh, err}, []any{true, nil})
	f.expectSent("")

	f.state.SeenGone(true) // the end of the object is not that of the other history
	f.state.NotOlderThan("1")
	f.refresh(cached)
}

// What is indexed must not be older than what handlers see.
func TestASessionKnowsWhetherItIsAheadOfTheWatch(t *testing.T) {
	read := func(f *fixture) { _, _ = f.ReadLive(t.Context()) }
	change := func(f *fixture) { f.change(m{"spec": m{"size": int64(2)}}) }
	tests := map[string]struct {
		happens func(f *fixture)
		want    bool
	}{
		"nothing was read":                {change, false},
		"a read shows the same":           {read, false},
		"a read shows a later version":    {func(f *fixture) { change(f); read(f) }, true},
		"the watch has caught up":         {func(f *fixture) { change(f); read(f); f.refresh(f.cached()); read(f) }, false},
		"the operator itself has written": {func(f *fixture) { f.edit("a", set("x", "spec", "a")); f.write(Update{}) }, false},
		"a conflict": {func(f *fixture) {
			f.faults = []fault{{before: func() { change(f) }}}
			f.edit("a", set("x", "spec", "a"))
			f.write(Update{})
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			test.happens(f)
			f.expect("ahead", f.IsAheadOfWatch(), test.want)
		})
	}
}

// page is the response of a proxy.
func page() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, http.MethodPatch, schema.GroupResource{Resource: "kex"}, "one", "<html>", 0, true)
}

func TestAnObjectIsGoneOnlyIfAListConfirmsIt(t *testing.T) {
	tests := map[string]struct {
		response error
		before   func(f *fixture)
		sent     string
		failure  string // empty: it is gone
	}{
		"the object is deleted":              {answer(http.StatusNotFound), func(f *fixture) { f.object = nil }, "PATCH, LIST", ""},
		"the object is replaced":             {answer(http.StatusNotFound), func(f *fixture) { f.replace() }, "PATCH, LIST", ""},
		"a proxy has responded":              {page(), func(*fixture) {}, "PATCH", "does not come from the API server"},
		"the response is about another name": {apierrors.NewNotFound(schema.GroupResource{Resource: "kex"}, "two"), func(*fixture) {}, "PATCH", "is not about the object"},
		"the object is listed":               {answer(http.StatusNotFound), func(*fixture) {}, "PATCH, LIST", "but lists it"},
		"the list fails":                     {answer(http.StatusNotFound), func(f *fixture) { f.readErr = errDown }, "PATCH, LIST", "cannot confirm that"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.edit("a", set("x", "spec", "a"))
			f.faults = []fault{{err: test.response, before: func() { test.before(f) }}}
			outcome, err := f.Write(t.Context(), Update{Cycle: f.finished(cause.Create, "a")})
			f.expectSent(test.sent)
			f.expect("gone", []bool{outcome.Gone, f.state.Gone()}, []bool{test.failure == "", test.failure == ""})
			if test.failure == "" {
				f.expect("finished", f.done["a"], 1)
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.failure) {
				t.Fatalf("got %v", err)
			}
			f.readErr = nil
			f.expect("ended later", f.flush().Ended, true)
			f.expect("edit", f.field("spec", "a"), "x")
		})
	}
}

func TestAReadThatFindsNothingIsConfirmed(t *testing.T) {
	f := newFixture(t, m{})
	cached := f.cached()
	f.faults, f.readErr = []fault{{err: errDown}}, page()
	_ = f.writeFails(Update{Cycle: f.finished(cause.Create, "a")})
	f.nextPass()
	if _, err := f.Refresh(t.Context(), cached); err == nil || f.state.Gone() {
		t.Errorf("got %v, gone: %v", err, f.state.Gone())
	}
}

// Versions from before the end of an object do not bring it back: the watch is late.
func TestALaterVersionBringsAnObjectBack(t *testing.T) {
	f := newFixture(t, m{})
	former := f.object
	f.change(m{"spec": m{"size": int64(2)}}) // not shown by the watch yet
	between := f.snapshot(f.object)
	f.faults = []fault{{err: answer(http.StatusNotFound), before: func() { f.object = nil; f.version++ }}}
	f.expect("gone", f.write(Update{Cycle: f.finished(cause.Create, "a")}).Gone, true)
	f.nextPass()
	fresh, err := f.Refresh(t.Context(), between)
	f.expect("late version", fresh == Freshness{} && err == nil && f.state.Gone(), true)

	f.store(former) // as after a restored backup of the cluster
	f.nextPass()
	fresh, err = f.Refresh(t.Context(), f.cached())
	f.expect("later version", fresh.Fresh && err == nil && !f.state.Gone(), true)
	f.expect("version", f.Body().ResourceVersion(), strconv.Itoa(f.version))
}

// A deletion releases the object while an earlier change could not be written.
func TestNothingIsWrittenToAReleasedObject(t *testing.T) {
	release := func(f *fixture) { f.change(m{"metadata": deleting(theirs)}) }
	tests := map[string]func(f *fixture) Outcome{
		"meanwhile": func(f *fixture) Outcome {
			f.faults = []fault{{before: func() { release(f) }}}
			return f.write(Update{Cycle: f.finished(cause.Create, "a")})
		},
		"before the last write of a pass": func(f *fixture) Outcome {
			c := f.finished(cause.Create, "a")
			f.faults = []fault{{before: func() { release(f) }}}
			f.write(Update{Cycle: c})
			f.sent()
			outcome := f.write(Update{Cycle: c})
			f.expectSent("")
			return outcome
		},
		"between two passes": func(f *fixture) Outcome {
			f.faults, f.readErr = []fault{{err: errDown}}, errDown
			_ = f.writeFails(Update{Cycle: f.finished(cause.Create, "a")})
			f.readErr = nil
			release(f)
			return f.flush()
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{"finalizers": []any{ours, theirs}})
			f.edit("a", set("x", "spec", "a"))
			outcome := test(f)
			f.expect("gone, ended", []bool{outcome.Gone, outcome.Ended}, []bool{false, false})
			f.expect("changed by others, in this pass", outcome.ChangedByOthers, name != "between two passes")
			f.expect("edit", f.field("spec", "a"), nil)
			f.expect("base", f.storedBase() == nil, true)
			f.expect("finished", f.done["a"], 1)
			f.expect("edits", f.state.HasEdits() || f.state.pending != nil, false)
		})
	}
}

func TestVanishedObjectIsFoundAgain(t *testing.T) {
	for name, test := range map[string]struct {
		before       func(f *fixture)
		uid          types.UID
		exists, gone bool
		fails        bool
		sent         string
	}{
		"it exists":                          {func(*fixture) {}, "u-1", true, false, false, "LIST"},
		"it is deleted":                      {func(f *fixture) { f.object = nil }, "u-1", false, true, false, "LIST"},
		"it was replaced":                    {func(f *fixture) { f.object["metadata"].(m)["uid"] = "u-2" }, "u-1", false, true, false, "LIST"},
		"nothing is known":                   {func(f *fixture) { f.readErr = errDown }, "u-1", false, false, true, "LIST"},
		"it was released":                    {func(f *fixture) { f.state.MarkGone() }, "u-1", false, true, false, ""},
		"it was released before":             {func(f *fixture) { f.state.SeenMissing(); f.state.SeenGone(true) }, "u-1", false, true, false, ""},
		"it was released in another history": {func(f *fixture) { f.state.SeenMissing(); f.state.BeginAnew(); f.state.MarkGone() }, "u-1", false, true, false, ""},
		"a list did not have it": {
			func(f *fixture) {
				f.state.SeenMissing()
				f.state.MarkGone() // the pass has ended the work on it
			}, "u-1", true, false, false, "LIST",
		},
		"a list did not have it, and it is deleted": {
			func(f *fixture) {
				f.state.SeenMissing()
				f.object = nil
			}, "u-1", false, true, false, "LIST",
		},
		"an earlier object of the name": {func(*fixture) {}, "u-0", false, false, false, "LIST"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			test.before(f)
			f.sent()
			exists, err := f.FindAgain(t.Context(), test.uid)
			f.expect("exists, fails, gone", []any{exists, err != nil, f.state.Gone()}, []any{test.exists, test.fails, test.gone})
			f.expectSent(test.sent)
			if test.exists || test.fails {
				return
			}
			again, err := f.FindAgain(t.Context(), test.uid)
			f.expect("again", []any{again, err}, []any{false, nil})
			if test.gone {
				f.expectSent("")
			}
		})
	}
}

// The state is about a later object of the name, which has ended.
func TestAnEarlierObjectThatIsFoundAgainIsNotThatOfTheState(t *testing.T) {
	f := newFixture(t, m{})
	f.state.Reset("u-2")
	f.state.MarkGone()
	exists, err := f.FindAgain(t.Context(), "u-1")
	f.expect("exists, error, gone", []any{exists, err, f.state.Gone()}, []any{true, nil, true})
	f.expectSent("LIST")
}
