package kopf_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// complaint matches an error of the compiler.
var complaint = regexp.MustCompile(`options\.go:(\d+):\d+: (.*)`)

// An option of another family of handlers does not compile.
func TestOptionsThatDoNotFitDoNotCompile(t *testing.T) {
	source, err := os.ReadFile("testdata/options/options.go")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	build := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "./testdata/options")
	build.Stderr = &out
	if err := build.Run(); err == nil {
		t.Error("everything compiles")
	}
	complaints := map[int]string{}
	for _, found := range complaint.FindAllStringSubmatch(out.String(), -1) {
		number, _ := strconv.Atoi(found[1])
		complaints[number] = found[2]
	}
	if len(complaints) == 0 {
		t.Fatalf("the compiler says %s", out.String())
	}
	for i, line := range strings.Split(string(source), "\n") {
		refused, want := complaints[i+1] != "", strings.HasSuffix(line, "// refused")
		if refused != want {
			t.Errorf("line %d: %s\nthe compiler says %q", i+1, strings.TrimSpace(line), complaints[i+1])
		}
	}
}

// What a family cannot tell apart is a mistake in the declaration, with its place.
func TestOptionsOfOtherKindsAreMistakes(t *testing.T) {
	pods := kopf.Resource("v1", "pods")
	there := kopf.Present()
	change := func(context.Context, *kopf.Change) error { return nil }
	event := func(context.Context, *kopf.WatchEvent) error { return nil }
	daemon := func(context.Context, *kopf.Task) error { return nil }
	timer := func(context.Context, *kopf.Tick) error { return nil }
	child := func(context.Context, *kopf.ChildChange) error { return nil }
	drift := func(context.Context, *kopf.Drift) (kopf.Resolution, error) { return kopf.Resolution{}, nil }
	ensure := func(context.Context, *kopf.Change) ([]client.Object, error) { return nil, nil }
	admit := func(context.Context, *kopf.Admission) error { return nil }
	startup := func(context.Context, *kopf.Startup) error { return nil }
	for i, test := range []struct {
		declare func(r *kopf.Registry)
		want    string
	}{
		{func(r *kopf.Registry) { r.OnCreate(pods, change, kopf.ValueBefore(there)) }, "kopf.ValueBefore is an option of "},
		{func(r *kopf.Registry) { r.OnCreate(pods, change, kopf.ValueAfter(there)) }, "kopf.ValueAfter is an option of "},
		{func(r *kopf.Registry) { r.OnCreate(pods, change, kopf.Optional()) }, "kopf.Optional is an option of "},
		{func(r *kopf.Registry) { r.OnCreate(pods, change, kopf.HoldOnFailure()) }, "kopf.HoldOnFailure is an option of "},
		{func(r *kopf.Registry) { r.OnCreate(pods, change, kopf.Deleted()) }, "kopf.Deleted is an option of "},
		{func(r *kopf.Registry) { r.OnCreate(pods, change, kopf.CallUntyped()) }, "kopf.CallUntyped is an option of "},
		{func(r *kopf.Registry) { r.OnCreate(pods, change, nil) }, "one of its options is nil"},
		{func(r *kopf.Registry) { r.OnUpdate(pods, change, kopf.Optional()) }, "kopf.Optional is an option of "},
		{func(r *kopf.Registry) { r.OnUpdate(pods, change, kopf.HoldOnFailure()) }, "kopf.HoldOnFailure is an option of "},
		{func(r *kopf.Registry) { r.OnUpdate(pods, change, kopf.Deleted()) }, "kopf.Deleted is an option of "},
		{func(r *kopf.Registry) { r.OnField(pods, "spec", change, kopf.Optional()) }, "kopf.Optional is an option of "},
		{func(r *kopf.Registry) { r.OnField(pods, "spec", change, kopf.Deleted()) }, "kopf.Deleted is an option of "},
		{func(r *kopf.Registry) { r.OnDelete(pods, change, kopf.ValueBefore(there)) }, "kopf.ValueBefore is an option of "},
		{func(r *kopf.Registry) { r.OnDelete(pods, change, kopf.ValueAfter(there)) }, "kopf.ValueAfter is an option of "},
		{func(r *kopf.Registry) { r.OnDelete(pods, change, kopf.Deleted()) }, "kopf.Deleted is an option of "},
		{func(r *kopf.Registry) { r.OnDelete(pods, change, kopf.Revision("2")) }, "kopf.Revision is an option of "},
		{func(r *kopf.Registry) { r.OnResume(pods, change, kopf.ValueBefore(there)) }, "kopf.ValueBefore is an option of "},
		{func(r *kopf.Registry) { r.OnResume(pods, change, kopf.ValueAfter(there)) }, "kopf.ValueAfter is an option of "},
		{func(r *kopf.Registry) { r.OnDelete(pods, change, kopf.Idle(time.Second)) }, "kopf.Idle is an option of "},
		{func(r *kopf.Registry) { r.OnResume(pods, change, kopf.Idle(time.Second)) }, "kopf.Idle is an option of "},
		{func(r *kopf.Registry) { r.OnResume(pods, change, kopf.Optional()) }, "kopf.Optional is an option of "},
		{func(r *kopf.Registry) { r.OnResume(pods, change, kopf.HoldOnFailure()) }, "kopf.HoldOnFailure is an option of "},
		{func(r *kopf.Registry) { r.OnResume(pods, change, kopf.Baseline()) }, "kopf.Baseline is an option of "},
		{func(r *kopf.Registry) { r.OnEvent(pods, event, kopf.Retries(1)) }, "kopf.Retries is an option of "},
		{func(r *kopf.Registry) { r.OnEvent(pods, event, kopf.Timeout(time.Second)) }, "kopf.Timeout is an option of "},
		{func(r *kopf.Registry) { r.OnEvent(pods, event, kopf.Backoff(time.Second)) }, "kopf.Backoff is an option of "},
		{func(r *kopf.Registry) { r.OnEvent(pods, event, kopf.Errors(kopf.ErrorsIgnored)) }, "kopf.Errors is an option of "},
		{func(r *kopf.Registry) { r.OnEvent(pods, event, kopf.Limit(1)) }, "kopf.Limit is an option of "},
		{func(r *kopf.Registry) { r.OnEvent(pods, event, kopf.Deleted()) }, "kopf.Deleted is an option of "},
		{func(r *kopf.Registry) { r.Daemon(pods, daemon, kopf.Interval(time.Second)) }, "kopf.Interval is an option of "},
		{func(r *kopf.Registry) { r.Daemon(pods, daemon, kopf.Schedule("@daily")) }, "kopf.Schedule is an option of "},
		{func(r *kopf.Registry) { r.Daemon(pods, daemon, kopf.Sharp()) }, "kopf.Sharp is an option of "},
		{func(r *kopf.Registry) { r.Daemon(pods, daemon, kopf.Idle(time.Second)) }, "kopf.Idle is an option of "},
		{func(r *kopf.Registry) { r.Timer(pods, timer, kopf.CancellationBackoff(1)) }, "kopf.CancellationBackoff is an option of "},
		{func(r *kopf.Registry) { r.Timer(pods, timer, kopf.CancellationTimeout(1)) }, "kopf.CancellationTimeout is an option of "},
		{func(r *kopf.Registry) { r.Timer(pods, timer, kopf.CancellationPolling(1)) }, "kopf.CancellationPolling is an option of "},
		{func(r *kopf.Registry) { r.Timer(pods, timer, kopf.Deleted()) }, "kopf.Deleted is an option of "},
		{func(r *kopf.Registry) { r.OnChild(pods, pods, child, kopf.Field("spec")) }, "kopf.Field is an option of "},
		{func(r *kopf.Registry) { r.OnChild(pods, pods, child, kopf.AllowEmpty()) }, "kopf.AllowEmpty is an option of "},
		{func(r *kopf.Registry) { r.OnChild(pods, pods, child, kopf.EnsuredBy("x")) }, "kopf.EnsuredBy is an option of "},
		{func(r *kopf.Registry) { r.OnDrift(pods, drift, kopf.Retries(1)) }, "kopf.Retries is an option of "},
		{func(r *kopf.Registry) { r.OnDrift(pods, drift, kopf.ChildLabel("a")) }, "kopf.ChildLabel is an option of "},
		{func(r *kopf.Registry) { r.Ensure(pods, ensure, kopf.ChildLabel("a")) }, "kopf.ChildLabel is an option of "},
		{func(r *kopf.Registry) { r.Ensure(pods, ensure, kopf.Field("spec")) }, "kopf.Field is an option of "},
		{func(r *kopf.Registry) { r.Ensure(pods, ensure, kopf.Deleted()) }, "kopf.Deleted is an option of "},
		{func(r *kopf.Registry) { r.OnValidate(pods, admit, kopf.Retries(1)) }, "kopf.Retries is an option of "},
		{func(r *kopf.Registry) { r.OnStartup(startup, kopf.Labels(nil)) }, "kopf.Labels is an option of "},
		{func(r *kopf.Registry) { r.OnStartup(startup, kopf.Limit(1)) }, "kopf.Limit is an option of "},
	} {
		r := kopf.NewRegistry()
		test.declare(r)
		_, err := kopf.NewOperator(kopf.Options{Registry: r})
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "options_test.go:") {
			t.Errorf("%d: got %v, want %q", i, err, test.want)
		}
	}
}
