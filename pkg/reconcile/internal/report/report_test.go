package report_test

import (
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/settings"
)

type poster struct{ reasons []string }

func (p *poster) Post(_ corev1.ObjectReference, _, reason, _ string) {
	p.reasons = append(p.reasons, reason)
}

func TestEventsAreFilteredByTheirLevel(t *testing.T) {
	tests := map[string]struct {
		posting settings.Posting
		want    int
	}{
		"all levels":    {settings.Posting{Level: slog.LevelInfo}, 2},
		"warnings only": {settings.Posting{Level: slog.LevelWarn}, 1},
		"none":          {settings.Posting{Disabled: true}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, body := &poster{}, object.NewBody(map[string]any{})
			r := report.Reporter{Poster: p, Posting: test.posting}
			r.Event(body, report.Normal, "HandlerSucceeded", "")
			r.Event(body, report.Warning, "HandlerFailed", "")
			if len(p.reasons) != test.want {
				t.Errorf("got %q", p.reasons)
			}
		})
	}
	report.Reporter{}.Event(object.NewBody(map[string]any{}), report.Normal, "NoPoster", "") // must not panic
}
