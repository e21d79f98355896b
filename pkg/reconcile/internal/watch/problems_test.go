package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Each problem is logged once, as an error: handlers are not called.
func TestWarningsAreLoggedAsErrors(t *testing.T) {
	var lines []string
	logger := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	p := newProblems(logger, false)
	warnings := []error{&selector.NotFoundError{Selector: selector.New("kex")}, errors.New("another")}
	p.reportWarnings(warnings)
	p.reportWarnings(warnings)
	want := []string{
		`{"logger":"","msg":"Some handlers will not be called until their resource exists; the operator looks for it again.",` +
			`"error":"\"kex\" selects nothing in this cluster: install its CustomResourceDefinition, or correct the name"}`,
		`{"logger":"","msg":"Some handlers will not be called until this is corrected.","error":"another"}`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
}

// A resource that was found in the meantime is not mentioned again.
func TestSelectorsThatStillMatchNothingAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watchable := kex.Resource
		watchable.Verbs = []string{"list", "watch"}
		present := discovery.Snapshot{Resources: []selector.Resource{watchable}}
		var mu sync.Mutex
		var lines []string
		logger := funcr.New(func(_, line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}, funcr.Options{})
		logged := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(lines)
		}
		s := settings.Settings{}.WithDefaults()
		s.Scanning.Disabled = true
		w := New(Config{
			Settings: s, Logger: logger, Consumer: &recorder{},
			Source:    discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) { return present, nil }),
			Selectors: []selector.Selector{selector.New("kopfexmaples"), selector.New("widgets")}, Handlers: 2,
		})
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- w.Run(ctx) }()
		time.Sleep(missingTimeout - time.Second)
		synctest.Wait()
		before := len(logged())
		time.Sleep(time.Hour)
		synctest.Wait()
		found := logged()[before:]
		cancel()
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		if len(found) != 2 || !strings.Contains(found[0], `"selector"="kopfexmaples" "similar"=["kopfexamples.v1.kopf.dev"]`) ||
			!strings.Contains(found[1], `"selector"="widgets"`) || strings.Contains(found[1], "similar") {
			t.Errorf("got %q", found)
		}
		w.problems.reportWarnings(nil)
		w.problems.reportMissing()
		if len(logged()) > before+3 { // the third one says that the operator is stopping
			t.Errorf("got %q", logged()[before:])
		}
	})
}
