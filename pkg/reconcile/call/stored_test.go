package call_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The end of a cycle was stored, and the removal of its records was not. The next cycle has begun, or there is none.
func TestRecordsOfAnEarlierCycleAreStale(t *testing.T) {
	stored := map[string]*storage.Record{
		"ended":    {Purpose: cause.Update, Success: true, Cycle: "1", Subrefs: []string{"ended/sub"}},
		"retried":  {Purpose: cause.Update, Retries: 1},
		"ahead":    {Purpose: cause.Update, Success: true, Cycle: "2"},
		"resuming": {Purpose: cause.Resume, Retries: 1},
	}
	for name, test := range map[string]struct {
		ids       []string
		token     string
		stale     []string
		hasStale  bool // also records of the cycle that is open
		isChange  bool
		hasTokens bool
	}{
		"the next one has no records yet":    {[]string{"ended", "retried"}, "2", []string{"ended", "retried"}, true, true, true},
		"the next one has records":           {[]string{"ended", "ahead", "resuming"}, "2", []string{"ended"}, true, true, true},
		"there is no next one":               {[]string{"ended", "ahead", "retried", "resuming"}, "", []string{"ahead", "ended", "retried"}, true, false, false},
		"a handler has no record":            {[]string{"ended", "new"}, "2", []string{"ended"}, true, true, true},
		"all are of the open cycle":          {[]string{"ahead", "retried"}, "2", []string{}, true, true, true},
		"all are of a cycle without a token": {[]string{"retried"}, "2", []string{}, true, true, false},
		"only resuming handlers have some":   {[]string{"resuming"}, "2", []string{}, false, false, false},
		"there are no records":               {nil, "2", []string{}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := progressOf(stored)
			for _, id := range test.ids {
				p.Load(id)
			}
			p.MarkStale(test.token)
			records := p.Stored()
			if got := records.Stale(); !slices.Equal(got, test.stale) {
				t.Errorf("got %q", got)
			}
			for _, id := range test.stale {
				if got := p.Load(id); got.Stored() != nil || got.Found() != stored[id] || got.Finished() || got.Retries > 0 {
					t.Errorf("%s: got %+v", id, got)
				}
			}
			if records.HasStale() != test.hasStale || records.HasOpen(cause.Update) != test.isChange || records.HasTokens() != test.hasTokens {
				t.Errorf("got %v, %v, %v", records.HasStale(), records.HasOpen(cause.Update), records.HasTokens())
			}
			if got := records.HasToken("2"); got != (test.hasTokens && test.token == "2") {
				t.Errorf("the token of the open cycle: got %v", got)
			}
			if records.HasOpen(cause.Create) {
				t.Error("a creation is open")
			}
		})
	}
}

// Records of sub-handlers are found through those of their parents.
func TestRecordsThatReplaceStaleOnesReferToTheSameSubhandlers(t *testing.T) {
	p := progressOf(map[string]*storage.Record{
		"a":     {Started: time.Now(), Purpose: cause.Update, Retries: 1, Success: true, Cycle: "1", Subrefs: []string{"a/sub"}},
		"a/sub": {Started: time.Now(), Purpose: cause.Update, Retries: 1, Success: true, Cycle: "1"},
	})
	p.Load("a")
	p.MarkStale("2")
	state := p.Include("a", cause.Update, false)
	if state.Finished() || !slices.Equal(state.Subrefs, []string{"a/sub"}) {
		t.Errorf("got %+v", state.Record)
	}
	p.MarkStored()
	if got := p.Stored().Stale(); !slices.Equal(got, []string{"a/sub"}) || state.Stored() == nil {
		t.Errorf("got %q, %+v", got, state)
	}
}

func TestSinceIsTheFirstCallForThePurpose(t *testing.T) {
	then := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	p := progressOf(map[string]*storage.Record{
		"a":       {Purpose: cause.Update, Started: then.Add(2 * time.Second)},
		"b":       {Purpose: cause.Update, Started: then.Add(time.Second)},
		"c":       {Purpose: cause.Update, Started: then.Add(3 * time.Second)},
		"unknown": {Purpose: cause.Update},
		"other":   {Purpose: cause.Create, Started: then},
	})
	for _, id := range []string{"a", "b", "c", "unknown", "other", "new"} {
		p.Load(id)
	}
	for range 20 { // the order of the handlers is random
		for purpose, want := range map[cause.Reason]time.Time{cause.Update: then.Add(time.Second), cause.Create: then, cause.Delete: {}} {
			if got := p.Stored().Since(purpose); !got.Equal(want) {
				t.Fatalf("%s: got %s", purpose, got)
			}
		}
	}
}

func TestRecordsAreCopiesOfThoseOfCalledHandlers(t *testing.T) {
	p := progressOf(map[string]*storage.Record{
		"retried": {Purpose: cause.Delete, Retries: 1, Message: "m"},
		"skipped": {Purpose: cause.Delete, Success: true},
		"started": {Purpose: cause.Delete},
	})
	for _, id := range []string{"retried", "skipped", "started"} {
		p.Load(id)
	}
	records := p.Records()
	if len(records) != 2 || records["retried"].Message != "m" || !records["skipped"].Success {
		t.Errorf("got %v", records)
	}
	records["retried"].Message = "changed"
	if got := p.Load("retried").Message; got != "m" {
		t.Errorf("got %q", got)
	}
}

// Attempts were counted in memory while records could not be stored. Meanwhile, another operator may have stored others.
func TestRestoredRecordsYieldToLaterOnes(t *testing.T) {
	ours := &storage.Record{Started: time.Now(), Purpose: cause.Delete, Retries: 2, Message: "ours"}
	for name, test := range map[string]struct {
		theirs *storage.Record
		want   bool
	}{
		"there is none":                        {nil, true},
		"it has fewer attempts":                {&storage.Record{Started: time.Now(), Purpose: cause.Delete, Retries: 1}, true},
		"it has as many attempts":              {&storage.Record{Started: time.Now(), Purpose: cause.Delete, Retries: 2}, false},
		"it has more attempts":                 {&storage.Record{Started: time.Now(), Purpose: cause.Delete, Retries: 3}, false},
		"it has ended":                         {&storage.Record{Started: time.Now(), Purpose: cause.Delete, Retries: 1, Success: true}, false},
		"it has ended for another purpose":     {&storage.Record{Started: time.Now(), Purpose: cause.Update, Retries: 1, Success: true}, true},
		"it has more attempts for another one": {&storage.Record{Started: time.Now(), Purpose: cause.Update, Retries: 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := progressOf(map[string]*storage.Record{"a": test.theirs})
			p.Restore(map[string]*storage.Record{"a": ours})
			got := p.Include("a", cause.Delete, false)
			if isRestored := got.Message == "ours" && len(p.Dirty()) == 1; isRestored != test.want {
				t.Errorf("got %+v, dirty %q", got.Record, p.Dirty())
			}
		})
	}
}
