package page

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

func TestRates(t *testing.T) {
	start := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	var r rates
	for _, step := range []struct {
		after  time.Duration // since the start of the operator
		totals metrics.Totals
		want   string
	}{
		{time.Hour, metrics.Totals{Since: start, Calls: 120, Writes: 30}, "In the last 1 h: 2.0 calls of handlers, 0.5 writes, and 0 errors per minute."},
		{time.Hour + 5*time.Second, metrics.Totals{Since: start, Calls: 240, Writes: 30}, "In the last 1 h: 4.0 calls of handlers, 0.5 writes, and 0 errors per minute."}, // too short
		{time.Hour + time.Minute, metrics.Totals{Since: start, Calls: 132, Writes: 30, Errors: 1}, "In the last 1 min: 12 calls of handlers, 0 writes, and 1.0 errors per minute."},
		{2 * time.Hour, metrics.Totals{Since: start, Calls: 180, Writes: 30}, "In the last 2 h: 1.5 calls of handlers, 0.2 writes, and 0 errors per minute."},     // nobody has looked
		{3 * time.Hour, metrics.Totals{Since: start.Add(2 * time.Hour), Calls: 60}, "In the last 1 h: 1.0 calls of handlers, 0 writes, and 0 errors per minute."}, // it has started again
	} {
		if got := r.add(start.Add(step.after), step.totals).String(); got != step.want {
			t.Errorf("after %s: got  %s\nwant %s", step.after, got, step.want)
		}
	}
	if got := new(rates).add(start, metrics.Totals{}); got != (rate{}) {
		t.Errorf("nothing is known, and got %+v", got)
	}
}

// answering is a running operator.
type answering struct {
	activity *reconcile.Activity
	err      error
}

func (a answering) Activity(_ context.Context, key object.Key, _ types.UID) (*reconcile.Activity, error) {
	if key.Resource != "" {
		return &reconcile.Activity{At: a.activity.At, Leading: true, Ready: true, Version: "5", Calls: []reconcile.ActiveCall{{Handler: "create", Since: a.activity.At}}}, a.err
	}
	return a.activity, a.err
}

func (answering) Place() string { return "here" }

func TestWhatARunningOperatorKnowsIsShown(t *testing.T) {
	path, object := example("", "{}")
	now := time.Now()
	key := reconcile.ObjectCall{ActiveCall: reconcile.ActiveCall{Handler: "create", Since: now.Add(-3 * time.Minute)}, Resource: "kopfexamples.v1.kopf.dev", Namespace: "default", Name: "one"}
	waits := key
	waits.Handler, waits.Since = "slow", time.Time{}
	activity := &reconcile.Activity{At: now, Ready: true, Leading: true, Running: 1, Waiting: 1, Operator: &reconcile.OperatorActivity{
		Totals: metrics.Totals{Since: now.Add(-time.Hour), Calls: 600, Failed: 2, Retried: 3, Writes: 1200, Errors: 60},
		Calls:  []reconcile.ObjectCall{key}, Limited: []reconcile.ObjectCall{waits},
		Watches:  []reconcile.ActiveWatch{{Resource: "kopfexamples.v1.kopf.dev", State: "failing", Error: "no <b>connection</b>"}, {Resource: "configmaps.v1", Namespace: "a", State: "alive", Children: true}},
		Rollouts: []metrics.Rollout{{Resource: "kopfexamples.v1.kopf.dev", Handler: "create", Revision: "v2", Waiting: 5, Running: 1, Done: 3, Failed: 1}},
		Missing:  []string{`- {apiGroups: [""], resources: [pods], verbs: [list]}`},
	}}
	p := newPage(t, newAPI(t, map[string]string{path: object}), func(o *Options) { o.Running = answering{activity: activity} })
	shown := ask(p, "GET", "/operator", nil).Body.String()
	for _, want := range []string{
		"In the last 1 h: 10 calls of handlers, 20 writes, and 1.0 errors per minute.", "600 calls of handlers, of which 2 failed for good and 3 were repeated; 1200 writes; 60 errors.",
		"1 handler is running, 1 waits for a slot", `<a href="/object?name=one&amp;namespace=default&amp;resource=kopfexamples.kopf.dev">kopfexamples.kopf.dev/one in default</a>`, "waits for a slot</td>",
		"no &lt;b&gt;connection&lt;/b&gt;", `<progress max="100" value="30"`, "3 of 10 done, 1 running, 5 waiting", "1 failed", "resources: [pods], verbs: [list]",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("there is no %q in %s", want, shown)
		}
	}
	if shown := ask(p, "GET", "/", nil).Body.String(); !strings.Contains(shown, "In the last 1 h: 10 calls") {
		t.Errorf("got %s", shown)
	}
	if shown := ask(p, "GET", "/object?resource=kopfexamples.kopf.dev&namespace=default&name=one", nil).Body.String(); !strings.Contains(shown, "The handler create is running since") {
		t.Errorf("got %s", shown)
	}

	silent := newPage(t, newAPI(t, map[string]string{path: object}), func(o *Options) { o.Running = answering{activity, errors.New("no answer")} })
	for _, path := range []string{"/", "/operator", "/object?resource=kopfexamples.kopf.dev&namespace=default&name=one"} {
		if answer := ask(silent, "GET", path, nil); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "no answer") {
			t.Errorf("%s: got %s", path, answer.Body)
		}
	}
	if shown := ask(newPage(t, newAPI(t, nil), nil), "GET", "/operator", nil).Body.String(); !strings.Contains(shown, askForMore) {
		t.Errorf("got %s", shown)
	}
}
