package watch

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

func TestResourcesThatCannotBePatchedAreServedOnlyWithoutWritingHandlers(t *testing.T) {
	for name, needsPatch := range map[string]bool{"handlers that write": true, "handlers that only look": false} {
		t.Run(name, func(t *testing.T) {
			present := discovery.Snapshot{Resources: []selector.Resource{
				{Version: "v1", Plural: "componentstatuses", Kind: "ComponentStatus", Preferred: true, Verbs: []string{"get", "list", "watch"}},
				{Version: "v1", Plural: "pods", Kind: "Pod", Preferred: true, Verbs: []string{"get", "list", "watch", "patch"}},
			}}
			w := New(Config{
				Settings: settings.Settings{}.WithDefaults(), Logger: logr.Discard(), Consumer: &recorder{needsPatch: needsPatch},
				Source:    discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) { return present, nil }),
				Selectors: []selector.Selector{selector.New("pods"), selector.New("componentstatuses")},
			})
			if err := w.discover(t.Context()); err != nil {
				t.Fatal(err)
			}
			served := map[string]bool{}
			for _, found := range w.wanted {
				served[found.Plural] = true
			}
			var warnings []string
			for warning := range w.problems.current {
				warnings = append(warnings, warning)
			}
			if !served["pods"] || served["componentstatuses"] == needsPatch || (len(warnings) == 1) != needsPatch {
				t.Errorf("got %v, %q", served, warnings)
			}
			if needsPatch && !strings.Contains(warnings[0], "does not offer to patch them (only get, list, watch)") {
				t.Errorf("got %q", warnings)
			}
		})
	}
}

// An operator can start before its API server, as after a power failure. It says what it waits for.
func TestOperatorWaitsForAnAPIServerThatStarts(t *testing.T) {
	refused := error(syscall.ECONNREFUSED)
	tests := map[string]struct {
		failure error
		timeout time.Duration
		back    time.Duration // zero: never
		want    time.Duration
		starts  bool
	}{
		"it answers after a while":         {refused, 0, 3 * time.Minute, 3 * time.Minute, true},
		"it is not available for a while":  {apierrors.NewServiceUnavailable("starting"), 0, 3 * time.Minute, 3 * time.Minute, true},
		"it never answers":                 {refused, 0, 0, settings.DefaultStartTimeout, false},
		"it never answers in a short time": {refused, time.Minute, 0, time.Minute, false},
		"it never answers, without a wait": {refused, -1, 0, 0, false},
		"it refuses the operator":          {apierrors.NewUnauthorized("who?"), 0, 0, startTimeout, false},
		"it is there":                      {nil, 0, 0, 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s := settings.Settings{}
				s.Networking.StartTimeout = test.timeout
				var said []string
				w := New(Config{
					Settings: s.WithDefaults(), Consumer: &recorder{},
					Logger: funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{}),
					Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) {
						if test.failure != nil && (test.back == 0 || time.Since(began) < test.back) {
							return discovery.Snapshot{}, test.failure
						}
						return discovery.Snapshot{}, nil
					}),
				})
				err := w.reach(t.Context())
				if took := time.Since(began); took != test.want || (err == nil) != test.starts || !test.starts && !errors.Is(err, test.failure) {
					t.Errorf("got %v after %s", err, took)
				}
				if waits := test.want > 0; (len(said) == 1) != waits || waits && !strings.Contains(said[0], "the operator waits for the API server") {
					t.Errorf("said %q", said)
				}
			})
		})
	}
}
