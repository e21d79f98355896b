package otelkopf_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/otelkopf"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// start runs an operator until the returned function is called.
func start(t *testing.T, config *rest.Config, provider *sdktrace.TracerProvider) (stop func()) {
	t.Helper()
	registry := kopf.NewRegistry()
	maps := kopf.Resource("v1", "configmaps")
	registry.OnCreate(maps, func(ctx context.Context, c *kopf.Change) error {
		_, span := provider.Tracer("").Start(ctx, "of the handler")
		defer span.End()
		if c.Retry() == 0 {
			return kopf.Temporary(errors.New("not yet"), time.Minute)
		}
		return nil
	}, kopf.ID("create"))
	registry.OnUpdate(maps, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("update"))
	options := kopf.Options{Registry: registry, Config: config, Logger: logr.Discard(), Tracer: otelkopf.NewTracer(otelkopf.WithTracerProvider(provider))}
	options.Settings.Name = "example.com"
	options.Settings.Scope.Namespaces = []string{"default"}
	options.Settings.Networking.QPS = -1
	options.Settings.Watching.InactivityTimeout = -1
	options.Settings.Peering.Standalone = true
	operator, err := kopf.NewOperator(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	<-operator.Ready()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// The cycle of a client's change belongs to the trace of the client, also in the next process, and a later change begins
// another one.
func TestOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider, exporter := newProvider(t)
		config := kopftest.NewAPIServer(t).Config()
		cluster, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, config, provider)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "one", Annotations: map[string]string{"traceparent": parent},
		}}
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		stop()
		stop = start(t, config, provider)
		time.Sleep(2 * time.Minute)
		change := client.RawPatch(types.MergePatchType, []byte(`{"data": {"a": "b"}}`))
		if err := cluster.Patch(t.Context(), object, change); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		stop()

		want := []string{
			"1 cycle create (interrupted) at 0s",
			"1   pass () at 0s",
			"1     handler create (retried) at 0s",
			"1       of the handler () at 0s",
			"1     write progress (written) at 0s",
			"1 cycle create (succeeded) at 0s",
			"1   pass () at 1m0s",
			"1     handler create (succeeded) at 1m0s",
			"1       of the handler () at 1m0s",
			"1     write handled (written) at 1m0s",
			"2 cycle update (succeeded) at 2m1s, linked",
			"2   pass () at 2m1s",
			"2     handler update (succeeded) at 2m1s",
			"2     write handled (written) at 2m1s",
		}
		if got := tree(exporter.GetSpans()); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// tree returns a line for each span, with the number of its trace, in which that of the client is the first.
func tree(spans tracetest.SpanStubs) (lines []string) {
	client, err := trace.TraceIDFromHex(theirTrace)
	if err != nil {
		return []string{err.Error()}
	}
	numbers := map[trace.TraceID]int{client: 1}
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.EndTime.Compare(b.EndTime) })
	known := map[trace.SpanID]bool{}
	for _, span := range spans {
		known[span.SpanContext.SpanID()] = true
	}
	var write func(parent trace.SpanID, indent string)
	write = func(parent trace.SpanID, indent string) {
		for _, span := range spans {
			of := span.Parent.SpanID()
			if !known[of] {
				of = trace.SpanID{}
			}
			if of != parent {
				continue
			}
			id := span.SpanContext.TraceID()
			if numbers[id] == 0 {
				numbers[id] = len(numbers) + 1
			}
			outcome := ""
			for _, a := range span.Attributes {
				if a.Key == "kopf.outcome" {
					outcome = a.Value.String()
				}
			}
			line := fmt.Sprintf("%d %s%s (%s) at %v", numbers[id], indent, span.Name, outcome, span.StartTime.Sub(epoch))
			if len(span.Links) > 0 {
				line += ", linked"
			}
			lines = append(lines, line)
			write(span.SpanContext.SpanID(), indent+"  ")
		}
	}
	write(trace.SpanID{}, "")
	return lines
}

// epoch is when virtual time begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
