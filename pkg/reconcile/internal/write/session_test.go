package write

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			*f.state = State{uncertain: true}
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
			f.expect("reported", reported > 0, test.reported)
		})
	}
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
}
