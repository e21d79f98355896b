package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/recording"
	"github.com/kopf-go/kopf/pkg/settings"
)

// passesRecorded returns what an operator records during some passes, one line for each event, pass, and
// outcome, without repetitions.
func passesRecorded(t *testing.T, declare func(r *registry.Registry), live func(l *lone)) (lines []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recording")
	persistence := settings.Settings{}.WithDefaults().Persistence
	recorder, err := recording.Open(recording.Options{File: file, DiffBase: persistence.DiffBase, Progress: persistence.Progress})
	if err != nil {
		t.Fatal(err)
	}
	live(newLone(t, m{}, declare, func(c *Config) { c.Recorder = recorder }))
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e recording.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Pass != nil:
			s, d := e.Pass.Facts, e.Pass.Decision
			lines = append(lines, fmt.Sprintf("held=%t initial=%t handled=%t records=%v: %s due=%q background=%q",
				s.Held, s.Initial, s.Old != nil, s.Records, d.Reason, d.Due, d.Background))
		case e.Event != nil:
			lines = append(lines, "event "+e.Event.Type)
		case e.Outcome != nil:
			lines = append(lines, e.Outcome.Handler+" "+e.Outcome.Result)
		}
	}
	return slices.Compact(lines)
}

func TestFactsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err error
		fn := handlertest.Function(func(context.Context, *handler.Call) error { return err })
		got := passesRecorded(t, func(r *registry.Registry) {
			r.Add(handler.Create(selector.New("kopfexamples"), fn, handler.ID("create")))
			r.Add(handler.Update(selector.New("kopfexamples"), fn, handler.ID("update")))
			r.Add(handler.Delete(selector.New("kopfexamples"), fn, handler.ID("delete")))
		}, func(l *lone) {
			l.rest()
			l.state().reconciledVersion = "" // look again
			l.rest()
			err = handler.Temporary(errBroken, time.Minute)
			l.server.change(m{"spec": m{"size": 2}})
			if _, err := l.pass(); err != nil {
				t.Fatal(err)
			}
			l.server.change(m{"spec": m{"size": nil}}) // taken back
			err = nil
			time.Sleep(time.Minute)
			l.rest()
		})
		want := []string{
			`held=false initial=false handled=false records=map[]: create due=["create"] background=[]`,
			`held=true initial=false handled=false records=map[]: create due=["create"] background=[]`,
			`create succeeded`,
			`held=true initial=false handled=true records=map[]: noop due=[] background=[]`,
			`held=true initial=false handled=true records=map[]: update due=["update"] background=[]`,
			`update retried`,
			`held=true initial=false handled=true records=map[update:{update 1 false}]: update due=["update"] background=[]`,
			`update succeeded`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
	})
}

// A resource without handlers of changes has no cycle.
func TestFactsOfTimersAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := passesRecorded(t, func(r *registry.Registry) {
			tick := func(context.Context, *handler.Call) error { return nil }
			r.Add(handler.Timer(selector.New("kopfexamples"), handlertest.Function(tick), handler.ID("timer"), handler.Interval(time.Hour)))
		}, func(l *lone) {
			l.rest()
			l.engine.supervisor.Stop(context.Background())
		})
		if len(got) != 1 || !strings.HasSuffix(got[0], `due=[] background=["timer"]`) {
			t.Errorf("got %q", got)
		}
	})
}

// An object that the operator finds at its start is initial.
func TestInitialFactsAreRecorded(t *testing.T) {
	got := passesRecorded(t, func(r *registry.Registry) {
		r.Add(handler.Resume(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("resume")))
		r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("create")))
	}, func(l *lone) {
		l.rest()
		l.state().lifetime = lifetime{}
		l.state().initial.Store(true)
		l.state().reconciledVersion = ""
		l.rest()
	})
	if i := slices.IndexFunc(got, func(line string) bool { return strings.Contains(line, "initial=true") }); i < 0 || !strings.Contains(got[i], `resume due=["resume"]`) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
