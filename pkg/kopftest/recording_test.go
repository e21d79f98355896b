package kopftest

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// An id that no handler has would look like a handler that is never called.
func TestCallsKnowTheIDsOfHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(t, func() *kopf.Registry {
			r := kopf.NewRegistry()
			fn := func(context.Context, *kopf.Change) error { return nil }
			r.OnUpdate(kopf.Resource("configmaps"), fn, kopf.ID("theme"), kopf.Field("data.theme"))
			r.OnCreate(kopf.Resource("configmaps"), fn, kopf.ID("users"))
			r.OnCleanup(func(context.Context, *kopf.Activity) error { return nil }, kopf.ID("close"))
			return r
		})
		for id, want := range map[string]string{
			"theme/data.theme": "", "users": "", "users/alice": "", "close": "",
			"theme": `no handler has the id "theme"; the declared ids are close, theme/data.theme, users`,
			"user":  `no handler has the id "user"; the declared ids are close, theme/data.theme, users`,
		} {
			if got := h.recording.unknown(h.runs.declared, []string{id}); got != want {
				t.Errorf("%s: got %q", id, got)
			}
		}
	})
}
