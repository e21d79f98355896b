package watch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Each problem is logged once, as an error: handlers are not called.
func TestWarningsAreLoggedAsErrors(t *testing.T) {
	var lines []string
	logger := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	p := newProblems(logger, false, func(sel selector.Selector) []string {
		if sel.String() == "kex" {
			return []string{"main.go:7", "main.go:9"}
		}
		return []string{"a.go:1", "b.go:2", "c.go:3", "d.go:4"}
	})
	warnings := []error{
		&selector.NotFoundError{Selector: selector.New("kex")},
		&selector.AmbiguousError{Selector: selector.New("events")},
		errors.New("another"),
	}
	p.reportWarnings(warnings)
	p.reportWarnings(warnings)
	want := []string{
		`{"logger":"","msg":"Some handlers will not be called until their resource exists; the operator looks for it again.",` +
			`"error":"\"kex\" selects nothing in this cluster: install its CustomResourceDefinition, or correct the name","declared":"main.go:7, main.go:9"}`,
		`{"logger":"","msg":"Some handlers will not be called until this is corrected.",` +
			`"error":"\"events\" is ambiguous, and none of the matching resources is served (): specify one of them with its group","declared":"a.go:1, b.go:2, c.go:3, …"}`,
		`{"logger":"","msg":"Some handlers will not be called until this is corrected.","error":"another"}`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
}

// collect returns a logger, and a function that returns its lines.
func collect() (logger logr.Logger, logged func() []string) {
	var mu sync.Mutex
	var lines []string
	logger = funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	return logger, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

// A problem that returns is a new one, also if it has the same text.
func TestProblemIsLoggedOnceEachTime(t *testing.T) {
	const message, other = "The resources cannot be listed.", "The namespaces cannot be watched."
	down, refused := apierrors.NewServiceUnavailable("down"), apierrors.NewUnauthorized("who?")
	dialed := func(from string) error {
		return &net.OpError{Op: "read", Net: "tcp", Err: errors.New(from + ": connection reset")}
	}
	for name, steps := range map[string][]struct {
		message string
		err     error
		logged  bool
	}{
		"two outages":                     {{message, down, true}, {message, down, false}, {message, nil, false}, {message, down, true}, {message, down, false}},
		"two outages of the network":      {{message, dialed("1"), true}, {message, dialed("2"), false}, {message, nil, false}, {message, dialed("3"), true}},
		"another error in one outage":     {{message, down, true}, {message, refused, true}, {message, refused, false}},
		"another message in one outage":   {{message, down, true}, {other, down, true}, {message, down, false}, {other, nil, false}, {message, down, false}},
		"without a message":               {{"", down, true}, {"", down, false}, {"", nil, false}, {"", down, true}},
		"the operator stops":              {{message, context.Canceled, false}},
		"the operator stops in an outage": {{message, down, true}, {message, context.Canceled, false}, {message, down, false}},
		"success before a failure":        {{message, nil, false}, {message, down, true}},
	} {
		t.Run(name, func(t *testing.T) {
			logger, logged := collect()
			p := newProblems(logger, false, nil)
			for i, step := range steps {
				before := len(logged())
				p.reportOnce(step.message, step.err)
				lines := logged()[before:]
				want := step.message
				if want == "" {
					want = "Some handlers will not be called until this is corrected."
				}
				if (len(lines) == 1) != step.logged || step.logged && !strings.Contains(lines[0], `"msg"="`+want+`" "error"="`+step.err.Error()) {
					t.Errorf("step %d: got %q", i+1, lines)
				}
			}
		})
	}
}

// noAccess is an API server that permits nothing.
type noAccess struct{}

// RoundTrip answers the question for a permission.
func (noAccess) RoundTrip(request *http.Request) (*http.Response, error) {
	const answer = `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":false}}`
	return &http.Response{
		StatusCode: http.StatusCreated, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(answer)),
	}, nil
}

// The second outage of the API server is logged as the first one was, and each of them once.
func TestEachOutageOfTheDiscoveryIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, logged := collect()
		outages := func() (count int) {
			for _, line := range logged() {
				if strings.Contains(line, `"The resources of the cluster cannot be listed; this is retried."`) {
					count++
				}
			}
			return count
		}
		var mu sync.Mutex
		var failure error
		set := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failure = err
		}
		w := New(Config{ // without the permission to watch definitions, it looks for resources again and again
			Settings: settings.Settings{}.WithDefaults(), Logger: logger, Consumer: &recorder{},
			REST: &rest.Config{Host: "http://nowhere"}, HTTP: &http.Client{Transport: noAccess{}},
			Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) {
				mu.Lock()
				defer mu.Unlock()
				return discovery.Snapshot{}, failure
			}),
		})
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- w.Run(ctx, nil) }()
		for outage := range 3 {
			set(nil)
			time.Sleep(10 * time.Minute)
			if got := outages(); got != outage {
				t.Errorf("before outage %d: %d lines", outage+1, got)
			}
			set(apierrors.NewServiceUnavailable("down"))
			time.Sleep(10 * time.Minute)
			if got := outages(); got != outage+1 {
				t.Errorf("in outage %d: %d lines", outage+1, got)
			}
		}
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// A resource that was found in the meantime is not mentioned again.
func TestSelectorsThatStillMatchNothingAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watchable := kex.Resource
		watchable.Verbs = []string{"list", "watch"}
		present := discovery.Snapshot{Resources: []selector.Resource{watchable}}
		logger, logged := collect()
		s := settings.Settings{}.WithDefaults()
		s.Scanning.Disabled = true
		w := New(Config{
			Settings: s, Logger: logger, Consumer: &recorder{},
			Source:    discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) { return present, nil }),
			Selectors: []selector.Selector{selector.New("kopfexmaples"), selector.New("widgets")}, Handlers: 2,
		})
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- w.Run(ctx, nil) }()
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
