package call_test

import (
	"maps"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/storage"
)

// A sub-handler is not included before its parent is called: it is open with it.
func TestOpenHandlersWillBeCalled(t *testing.T) {
	open := func(subrefs ...string) *storage.Record {
		return &storage.Record{Started: time.Now(), Purpose: cause.Update, Subrefs: subrefs}
	}
	ended := func(subrefs ...string) *storage.Record {
		r := open(subrefs...)
		r.Success = true
		return r
	}
	p := progressOf(map[string]*storage.Record{
		"open": open("open/open", "open/ended"), "open/open": open(), "open/ended": ended(),
		"ended": ended("ended/open"), "ended/open": open(),
		"other": open("other/open"), "other/open": open(),
	})
	p.Include("open", cause.Update, false)
	p.Include("ended", cause.Update, false)
	p.Load("other")
	for id, want := range map[string]bool{
		"unknown": false,
		"open":    true, "open/open": true, "open/ended": false,
		"ended": false, "ended/open": false,
		"other": false, "other/open": false,
	} {
		if got := p.IsOpen(id); got != want {
			t.Errorf("%s: got %v", id, got)
		}
	}
	for id, want := range map[string]bool{"unknown": false, "open": true, "ended": true, "other": false} {
		if got := p.TakesPart(id); got != want {
			t.Errorf("%s takes part: %v", id, got)
		}
	}
}

func TestHandlersThatWillBeCalledByThemselvesAreUnfinished(t *testing.T) {
	stored := map[string]*storage.Record{
		"open":   {Started: time.Now(), Purpose: cause.Update},
		"ended":  {Started: time.Now(), Purpose: cause.Update, Success: true},
		"misfit": {Started: time.Now(), Purpose: cause.Update},
		"other":  {Started: time.Now(), Purpose: cause.Update},
	}
	for id, want := range map[string]bool{"open": true, "ended": false, "misfit": false, "other": false} {
		p := progressOf(stored)
		p.Load(id)
		if id != "other" {
			p.Include(id, cause.Update, false)
		}
		if id == "misfit" {
			p.SetMisfit(id, errMisfit)
		}
		if got := p.HasUnfinished(); got != want {
			t.Errorf("%s: got %v", id, got)
		}
	}
}

func TestFailuresAreThoseOfTheCycle(t *testing.T) {
	failed := func(message string) *storage.Record {
		return &storage.Record{Started: time.Now(), Purpose: cause.Update, Failure: true, Message: message}
	}
	p := progressOf(map[string]*storage.Record{
		"a": failed("no"), "b": failed("never"), "other": failed("before"),
		"ended": {Started: time.Now(), Purpose: cause.Update, Success: true, Message: "fine"},
	})
	p.Load("other")
	if got := p.Failures(); got != nil {
		t.Errorf("got %v", got)
	}
	for _, id := range []string{"a", "b", "ended"} {
		p.Include(id, cause.Update, false)
	}
	if got := p.Failures(); !maps.Equal(got, map[string]string{"a": "no", "b": "never"}) {
		t.Errorf("got %v", got)
	}
}

// A failure counts although the handler is not called anymore in the cycle.
func TestFailedHandlersTakePart(t *testing.T) {
	p := progressOf(nil)
	p.Fail("a", errLater)
	if _, failed := p.Counts(); failed != 1 || !p.TakesPart("a") {
		t.Errorf("got %d", failed)
	}
}

func TestHandlersEndForAPurpose(t *testing.T) {
	for name, test := range map[string]struct {
		record storage.Record
		want   bool
	}{
		"it has not ended":              {storage.Record{Purpose: cause.Update}, false},
		"it has ended":                  {storage.Record{Purpose: cause.Update, Success: true}, true},
		"it has failed":                 {storage.Record{Purpose: cause.Update, Failure: true}, true},
		"it has ended for another":      {storage.Record{Purpose: cause.Create, Success: true}, false},
		"it has ended for an unknown":   {storage.Record{Success: true}, true},
		"it is open for an unknown one": {storage.Record{}, false},
	} {
		p := progressOf(map[string]*storage.Record{"a": &test.record})
		if got := p.Load("a").HasEnded(cause.Update); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestHandlersHaveARecordOfThePassOrBefore(t *testing.T) {
	p := progressOf(map[string]*storage.Record{"stored": {Started: time.Now(), Purpose: cause.Update}})
	p.Include("included", cause.Update, false)
	for id, want := range map[string]bool{"stored": true, "included": true, "neither": false} {
		if got := p.HasRecord(id); got != want {
			t.Errorf("%s: got %v", id, got)
		}
	}
}

// The handler b is selected for a change of spec.b. It follows the handler a of spec.a.
func TestEarlierHandlersTakePart(t *testing.T) {
	declare := func(id string, options ...handler.ChangeOption) *handler.Declaration {
		d, err := handler.Update(selector.New("kopfexamples"), handlertest.Function(failing(0, nil)), append(options, handler.ID(id), handler.Field("spec", id))...)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a := declare("a")
	b := declare("b", handler.After("a"))
	c := declare("c")
	before := object.Essence{"spec": map[string]any{"b": "1"}}
	after := object.Essence{"spec": map[string]any{"b": "2"}}
	change := &handler.Cause{
		Reason: cause.Update, Old: before, New: after, Diff: diff.Compute(before, after, diff.Full),
		CallContext: handler.CallContext{Body: object.NewBody(after)},
	}
	retried := &storage.Record{Started: time.Now(), Purpose: cause.Update, Retries: 1}
	ended := &storage.Record{Started: time.Now(), Purpose: cause.Update, Retries: 1, Success: true}
	for name, test := range map[string]struct {
		records map[string]*storage.Record
		want    string
	}{
		"none was called":                        {nil, "b"},
		"one is retried for what was taken back": {map[string]*storage.Record{c.ID: retried}, "b c"},
		"one has ended":                          {map[string]*storage.Record{c.ID: ended}, "b"},
		"one has ended that another follows":     {map[string]*storage.Record{a.ID: ended}, "b a"},
		"one is retried that another follows":    {map[string]*storage.Record{a.ID: retried}, "b a"},
	} {
		all := registry.Handlers{a, b, c}
		got := ""
		for _, d := range progressOf(test.records).WithEarlier(all.Selected(change), all, change) {
			got += " " + d.ID[:1]
		}
		if got != " "+test.want {
			t.Errorf("%s: got%s", name, got)
		}
	}
}
