package call_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

var errLater = errors.New("found later")

func TestEndedAreHandlersThatHaveEndedInThisPass(t *testing.T) {
	finished := func(purpose cause.Reason) *storage.Record {
		return &storage.Record{Started: time.Now(), Purpose: purpose, Success: true}
	}
	retried := &storage.Record{Started: time.Now(), Purpose: cause.Update, Retries: 1}
	tests := map[string]struct {
		stored *storage.Record
		do     func(p *call.Progress)
		want   bool
	}{
		"it has ended":               {nil, func(p *call.Progress) { p.Fail("a", errLater) }, true},
		"it has ended after a retry": {retried, func(p *call.Progress) { p.Fail("a", errLater) }, true},
		"it must be called":          {nil, func(*call.Progress) {}, false},
		"it must be called again":    {retried, func(*call.Progress) {}, false},
		"it had ended before":        {finished(cause.Update), func(*call.Progress) {}, false},
		"it had ended in a cycle of another purpose": {finished(cause.Create), func(p *call.Progress) {
			p.Fail("a", errLater)
		}, true},
		"it ends in a cycle of another purpose": {nil, func(p *call.Progress) {
			p.Load("a").Purpose = cause.Create
			p.Fail("a", errLater)
		}, false},
		"it is ahead of the cycle": {nil, func(p *call.Progress) { p.SetAhead("a", cause.Update) }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := progressOf(map[string]*storage.Record{"a": test.stored})
			p.Include("a", cause.Update, false)
			test.do(p)
			if got := slices.Contains(p.Ended(cause.Update), "a"); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestRecordsCarriedOverEndInTheNewCycle(t *testing.T) {
	p := progressOf(map[string]*storage.Record{"a": {Started: time.Now(), Purpose: cause.Create, Success: true}})
	p.Include("a", cause.Update, true)
	if got := p.Ended(cause.Update); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q", got)
	}
}

func TestSettledHandlersAreNotCalledAndHaveNoRecord(t *testing.T) {
	p := progressOf(map[string]*storage.Record{"b": {Started: time.Now(), Purpose: cause.Update, Retries: 3}})
	for _, id := range []string{"a", "b"} {
		p.SetAhead(id, cause.Update)
		p.Include(id, cause.Update, false)
	}
	if !p.Load("a").HasEnded(cause.Update) || len(p.Dirty()) > 0 {
		t.Errorf("got %+v, dirty %q", p.Load("a").Record, p.Dirty())
	}
	if got := p.Load("b"); got.Finished() || got.Retries != 3 {
		t.Errorf("the record counts: got %+v", got.Record)
	}
}

func TestRegisteredIsWhatAParentHasRegistered(t *testing.T) {
	p := progressOf(nil)
	p.Load("loaded")
	p.Register("registered")
	for id, want := range map[string]bool{"unknown": false, "loaded": false, "registered": true} {
		if got := p.IsRegistered(id); got != want {
			t.Errorf("%s: got %v", id, got)
		}
	}
}

func TestIsRetrying(t *testing.T) {
	of := func(r storage.Record) map[string]*storage.Record {
		r.Started = time.Now()
		return map[string]*storage.Record{"a": &r}
	}
	withSub := func(parent, sub storage.Record) map[string]*storage.Record {
		parent.Subrefs = []string{"a/x"}
		records := of(parent)
		sub.Started = time.Now()
		records["a/x"] = &sub
		return records
	}
	retried := storage.Record{Purpose: cause.Update, Retries: 1}
	started := storage.Record{Purpose: cause.Update}
	finished := storage.Record{Purpose: cause.Update, Retries: 1, Success: true}
	tests := map[string]struct {
		records map[string]*storage.Record
		want    bool
	}{
		"no record":                              {nil, false},
		"it was called":                          {of(retried), true},
		"it was not called":                      {of(started), false},
		"it was called for another purpose":      {of(storage.Record{Purpose: cause.Create, Retries: 1}), false},
		"it has finished":                        {of(finished), false},
		"its sub-handler was called":             {withSub(started, retried), true},
		"its sub-handler was not called":         {withSub(started, started), false},
		"it has finished without a sub-handler":  {withSub(finished, retried), false},
		"its sub-handler has finished":           {withSub(started, finished), false},
		"it was called, its sub-handler has not": {withSub(retried, started), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := progressOf(test.records).IsRetrying("a", cause.Update); got != test.want {
				t.Errorf("got %v", got)
			}
			again := progressOf(test.records)
			again.CallAgain("a")
			if got := again.IsRetrying("a", cause.Update); got == again.Load("a").Finished() {
				t.Errorf("got %v for a handler that must be called again", got)
			}
		})
	}
}

// revised returns the progress of a handler and a sub-handler that have succeeded, of one that
// waits for the sub-handler, too, and of one that has nothing to do with it. The outcome of the
// sub-handler is revised.
func revised(o call.Outcome) *call.Progress {
	of := func(r storage.Record) *storage.Record {
		r.Started, r.Purpose, r.Retries = time.Now(), cause.Update, 2
		return &r
	}
	success := storage.Record{Stopped: time.Now(), Success: true, Message: "m"}
	parent := success
	parent.Subrefs = []string{"a/x"}
	p := progressOf(map[string]*storage.Record{
		"a": of(parent), "a/x": of(success), "other": of(success),
		"waiting": of(storage.Record{Subrefs: []string{"a/x"}}),
	})
	for _, id := range []string{"other", "waiting", "a/x"} {
		p.Include(id, cause.Update, false)
	}
	p.Load("a")
	p.Revise("a/x", o)
	return p
}

func TestRevisedHandlerIsCalledAgainWithItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := revised(call.Outcome{Err: errLater, Delay: time.Minute})
		if got := p.Load("a/x"); got.Finished() || got.Retries != 2 || got.Message != "found later" || got.RemainingDelay(time.Now()) != time.Minute {
			t.Errorf("got %+v", got.Record)
		}
		if got := p.Load("a"); got.Finished() || got.Retries != 2 || got.Message != "" || !got.Stopped.IsZero() || got.RemainingDelay(time.Now()) != time.Minute {
			t.Errorf("got %+v", got.Record)
		}
		if got := p.Dirty(); !slices.Equal(got, []string{"a", "a/x"}) {
			t.Errorf("got %q", got)
		}
		if !p.Load("other").Finished() || !p.Load("waiting").Delayed.IsZero() {
			t.Errorf("got %+v, %+v", p.Load("other").Record, p.Load("waiting").Record)
		}
	})
}

func TestRevisedHandlerFailsAloneForGood(t *testing.T) {
	p := revised(call.Outcome{Err: errLater, Final: true})
	if got := p.Load("a/x"); !got.Failure || got.Success || got.Retries != 2 || got.Message != "found later" {
		t.Errorf("got %+v", got.Record)
	}
	if got := p.Dirty(); !slices.Equal(got, []string{"a/x"}) || !p.Load("a").Success {
		t.Errorf("got %q", got)
	}
}

func TestOnlyHandlersOfTheCycleCount(t *testing.T) {
	p := progressOf(map[string]*storage.Record{
		"success": {Started: time.Now(), Purpose: cause.Create, Success: true},
		"failure": {Started: time.Now(), Purpose: cause.Create, Failure: true},
	})
	p.Load("success")
	p.Load("failure")
	p.Include("unfinished", cause.Create, false)
	p.Include("unfinished, too", cause.Create, false)
	if succeeded, failed := p.Counts(); succeeded != 0 || failed != 0 {
		t.Errorf("got %d, %d", succeeded, failed)
	}
}

func TestRecordsOfResumingHandlersAreNotStale(t *testing.T) {
	p := progressOf(map[string]*storage.Record{"a": {Started: time.Now(), Purpose: cause.Resume}})
	p.Load("a")
	if p.Stored().HasStale() {
		t.Error("another operator finishes them")
	}
}

// New records refer to sub-handlers that are ahead of the cycle, as those would not be found
// otherwise. A handler refers neither to itself nor to one that is not declared anymore.
func TestNewRecordsReferToSubhandlersThatAreAhead(t *testing.T) {
	p := progressOf(nil)
	for id, parent := range map[string]string{"a": "a", "a/x": "a", "a/y": "a", "gone": ""} {
		p.Refer(parent, id)
		p.Refer(parent, id)
	}
	if got := p.Include("a", cause.Update, false).Subrefs; !slices.Equal(got, []string{"a/x", "a/y"}) {
		t.Errorf("got %q", got)
	}
	if got := p.IDs(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q", got)
	}
}

func TestRecordsOfChangesOfOtherCyclesAreStale(t *testing.T) {
	p := progressOf(map[string]*storage.Record{
		"ended":    {Purpose: cause.Update, Success: true, Cycle: "1"},
		"retried":  {Purpose: cause.Update, Retries: 1},
		"ahead":    {Purpose: cause.Update, Success: true, Cycle: "2"},
		"resuming": {Purpose: cause.Resume, Retries: 1},
	})
	for _, id := range []string{"ended", "retried", "ahead", "resuming"} {
		p.Load(id)
	}
	p.MarkStale("2")
	if got := p.Stored().Stale(); !slices.Equal(got, []string{"ended", "retried"}) {
		t.Errorf("got %q", got)
	}
}

// The records of one cycle have one token, whatever those of other reasons have.
func TestTokenOfTheStoredRecords(t *testing.T) {
	stored := map[string]*storage.Record{
		"open":    {Purpose: cause.Update},
		"ended":   {Purpose: cause.Update, Cycle: "7", Success: true},
		"again":   {Purpose: cause.Update, Cycle: "7", Success: true},
		"created": {Purpose: cause.Create, Cycle: "9", Success: true},
	}
	for _, test := range []struct {
		ids     []string
		purpose cause.Reason
		want    string
	}{
		{nil, cause.Update, ""},
		{[]string{"open"}, cause.Update, ""},
		{[]string{"open", "ended", "again", "created"}, cause.Update, "7"},
		{[]string{"open", "ended", "again", "created"}, cause.Create, "9"},
		{[]string{"ended"}, cause.Create, ""},
	} {
		progress := call.NewProgress(func(id string) *storage.Record { return stored[id] })
		for _, id := range test.ids {
			progress.Load(id)
		}
		if got := progress.Stored().TokenOf(test.purpose); got != test.want {
			t.Errorf("%q for the %s: got %q, want %q", test.ids, test.purpose, got, test.want)
		}
	}
}
