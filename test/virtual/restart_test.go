package virtual

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// A handler that is retried for a long time, or for ever, does not keep the next process from restoring children: what
// others do while no operator runs, and later.
func TestChildrenAreRestoredAfterARestartWhileAHandlerIsRetried(t *testing.T) {
	restarts := map[string]func(h *kopftest.Harness, meanwhile func()){
		"restart": func(h *kopftest.Harness, meanwhile func()) {
			h.Stop()
			meanwhile()
			h.Start()
		},
		"crash": func(h *kopftest.Harness, meanwhile func()) {
			h.Crash()
			meanwhile()
		},
		"two restarts": func(h *kopftest.Harness, meanwhile func()) {
			h.Restart()
			h.Stop()
			meanwhile()
			h.Start()
		},
	}
	disturbances := map[string]func(h *kopftest.Harness){
		"changed": func(h *kopftest.Harness) { h.Patch(newTheme(), `{"data": {"color": "red"}}`) },
		"deleted": func(h *kopftest.Harness) { h.Delete(newTheme()) },
	}
	for how, restart := range restarts {
		for what, disturb := range disturbances {
			for _, reason := range []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate} {
				t.Run(how+"/"+what+"/"+string(reason), func(t *testing.T) {
					withOperator(t, func(r *kopf.Registry) {
						r.Ensure(examples, theme, kopf.ID("children"))
						retried := func(_ context.Context, c *kopf.Change) error {
							if c.Reason() == reason {
								return kopf.Temporary(errors.New("not yet"), time.Hour)
							}
							return nil
						}
						r.OnCreate(examples, retried, kopf.ID("retried"))
						r.OnUpdate(examples, retried, kopf.ID("retried"))
					}, func(t *testing.T, h *kopftest.Harness) {
						one := newExample()
						h.Create(one)
						h.Advance(time.Minute)
						h.Patch(one, `{"spec": {"size": 4}}`)
						h.Advance(time.Minute)
						expect := func(when string) {
							t.Helper()
							h.Advance(time.Minute)
							if child := newTheme(); !h.Exists(child) {
								t.Errorf("%s: the child is missing", when)
							} else if h.Get(child); child.Data["color"] != "blue" {
								t.Errorf("%s: got %v", when, child.Data)
							}
						}
						expect("before")
						calls := len(h.Calls("children"))
						restart(h, func() { disturb(h) })
						expect("after the restart")
						if more := len(h.Calls("children")) - calls; more > 3 {
							t.Errorf("the handler was called %d times", more)
						}
						disturb(h)
						expect("later")
						writes := len(h.Writes())
						h.Advance(30 * time.Minute)
						if more := h.Writes()[writes:]; len(more) > 0 {
							t.Errorf("got the writes %v at rest", more)
						}
					})
				})
			}
		}
	}
}
