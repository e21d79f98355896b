// Package options shows to the compiler which options fit which handlers. Lines
// that end with the word refused must not compile, and all others must; that is
// what the test of options in pkg/kopf looks at.
package options

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/memo"
)

var (
	pods    = kopf.Resource("v1", "pods")
	there   = kopf.Present()
	filters = map[string]kopf.Matcher{"app": there}
)

func change(context.Context, *kopf.Change) error { return nil }

func event(context.Context, *kopf.WatchEvent) error { return nil }

func child(context.Context, *kopf.ChildChange) error { return nil }

func daemon(context.Context, *kopf.Task) error { return nil }

func timer(context.Context, *kopf.Tick) error { return nil }

func indexing(context.Context, *kopf.Indexed) (map[string]int, error) { return nil, nil }

func agree(kopf.Arguments) bool { return true }

func creations(r *kopf.Registry) {
	r.OnCreate(pods, change, kopf.ID("a"), kopf.Param(1), kopf.Labels(filters), kopf.Annotations(filters), kopf.When(agree))
	r.OnCreate(pods, change, kopf.Retries(1), kopf.Timeout(time.Second), kopf.Backoff(time.Second), kopf.Errors(kopf.ErrorsIgnored))
	r.OnCreate(pods, change, kopf.Field("spec"), kopf.Value(there))
	r.OnCreate(pods, event)                      // refused
	r.OnCreate("pods", change)                   // refused
	r.OnCreate(pods, change, kopf.Labels("app")) // refused
	r.OnCreate(pods, change, kopf.Value("x"))    // refused
	r.OnCreate(pods, change, kopf.When(there))   // refused
	r.OnCreate(pods, change, kopf.Value(agree))  // refused
	kopf.For[*corev1.Pod](r).OnCreate(change)    // refused
	kopf.For[corev1.Pod](r)                      // refused
	_ = kopf.All(there, agree)                   // refused
	_ = kopf.Not(kopf.Any(agree, kopf.None(agree)))
	_ = kopf.Not(kopf.Any(there, kopf.None(there)))
}

func updates(r *kopf.Registry) {
	r.OnUpdate(pods, change, kopf.ID("a"), kopf.Param(1), kopf.Labels(filters), kopf.Annotations(filters), kopf.When(agree))
	r.OnUpdate(pods, change, kopf.Retries(1), kopf.Timeout(time.Second), kopf.Backoff(time.Second), kopf.Errors(kopf.ErrorsIgnored))
	r.OnUpdate(pods, change, kopf.Field("spec"), kopf.Value(there), kopf.ValueBefore(there), kopf.ValueAfter(there))
	r.OnField(pods, "spec", change, kopf.ID("a"), kopf.Retries(1), kopf.Value(there), kopf.ValueBefore(there), kopf.ValueAfter(there))
	r.OnField(pods, change) // refused
}

func deletions(r *kopf.Registry) {
	r.OnDelete(pods, change, kopf.ID("a"), kopf.Param(1), kopf.Labels(filters), kopf.Annotations(filters), kopf.When(agree))
	r.OnDelete(pods, change, kopf.Retries(1), kopf.Timeout(time.Second), kopf.Backoff(time.Second), kopf.Errors(kopf.ErrorsIgnored))
	r.OnDelete(pods, change, kopf.Field("spec"), kopf.Value(there), kopf.Optional(), kopf.HoldOnFailure())
	r.OnDelete(pods, change, kopf.After("a"), kopf.AfterFailure("b"))
	r.OnEvent(pods, event, kopf.After("a")) // refused
}

func resuming(r *kopf.Registry) {
	r.OnResume(pods, change, kopf.ID("a"), kopf.Param(1), kopf.Labels(filters), kopf.Annotations(filters), kopf.When(agree))
	r.OnResume(pods, change, kopf.Retries(1), kopf.Timeout(time.Second), kopf.Backoff(time.Second), kopf.Errors(kopf.ErrorsIgnored))
	r.OnResume(pods, change, kopf.Field("spec"), kopf.Value(there), kopf.Deleted())
}

func children(r *kopf.Registry) {
	r.OnChild(pods, pods, child, kopf.ID("a"), kopf.Param(1), kopf.Labels(filters), kopf.Annotations(filters), kopf.When(agree))
	r.OnChild(pods, pods, child, kopf.Retries(1), kopf.Timeout(time.Second), kopf.Backoff(time.Second), kopf.Errors(kopf.ErrorsIgnored))
	r.OnChild(pods, pods, child, kopf.ChildLabel("a"), kopf.Limit(1), kopf.Deleted())
	r.OnChild(pods, pods, child, kopf.ValueBefore(there))  // refused
	r.OnChild(pods, pods, child, kopf.Optional())          // refused
	r.OnChild(pods, pods, child, kopf.Interval(time.Hour)) // refused
	r.OnChild(pods, pods, change)                          // refused
	r.OnCreate(pods, change, kopf.ChildLabel("a"))         // refused
}

func events(r *kopf.Registry) {
	r.OnEvent(pods, event, kopf.ID("a"), kopf.Param(1), kopf.Labels(filters), kopf.Annotations(filters), kopf.When(agree))
	r.OnEvent(pods, event, kopf.Field("spec"), kopf.Value(there))
	r.OnEvent(pods, event, kopf.ValueBefore(there)) // refused
	r.OnEvent(pods, event, kopf.Optional())         // refused
	r.OnEvent(pods, change)                         // refused
}

func background(r *kopf.Registry) {
	r.Daemon(pods, daemon, kopf.ID("a"), kopf.Param(1), kopf.Labels(filters), kopf.Annotations(filters), kopf.When(agree))
	r.Daemon(pods, daemon, kopf.Retries(1), kopf.Timeout(time.Second), kopf.Backoff(time.Second), kopf.Errors(kopf.ErrorsIgnored))
	r.Daemon(pods, daemon, kopf.Field("spec"), kopf.Value(there), kopf.InitialDelay(time.Second), kopf.InitialDelayFunc(delay))
	r.Daemon(pods, daemon, kopf.CancellationBackoff(1), kopf.CancellationTimeout(1), kopf.CancellationPolling(1))
	r.Daemon(pods, daemon, kopf.WakeOn("spec"), kopf.WatchChildren(pods), kopf.WatchChildrenOf[*corev1.Pod](), kopf.ChildLabel("a"))
	r.OnCreate(pods, change, kopf.WakeOn("spec"))   // refused
	r.Daemon(pods, daemon, kopf.ValueBefore(there)) // refused
	r.Daemon(pods, daemon, kopf.Optional())         // refused
	r.Daemon(pods, timer)                           // refused
	r.Daemon(pods, change)                          // refused
	kopf.For[*corev1.Pod](r).Daemon(daemon)         // refused

	r.Timer(pods, timer, kopf.ID("a"), kopf.Param(1), kopf.Labels(filters), kopf.Annotations(filters), kopf.When(agree))
	r.Timer(pods, timer, kopf.Retries(1), kopf.Timeout(time.Second), kopf.Backoff(time.Second), kopf.Errors(kopf.ErrorsIgnored))
	r.Timer(pods, timer, kopf.Field("spec"), kopf.Value(there), kopf.InitialDelay(time.Second), kopf.InitialDelayFunc(delay))
	r.Timer(pods, timer, kopf.Interval(time.Second), kopf.Sharp(), kopf.Idle(time.Second))
	r.Timer(pods, timer, kopf.IntervalFunc(delay), kopf.Sharp())
	r.Timer(pods, timer, kopf.Schedule("@daily", kopf.TimeZone("Europe/Berlin"), kopf.CatchUp(2)))
	r.Timer(pods, timer, kopf.ScheduleFunc(schedule, kopf.TimeZone("Europe/Berlin")))
	r.Timer(pods, timer, kopf.TimeZone("Europe/Berlin"))                      // refused
	r.Timer(pods, timer, kopf.Schedule("@daily", kopf.Interval(time.Second))) // refused
	r.Timer(pods, timer, kopf.ValueAfter(there))                              // refused
	r.Timer(pods, timer, kopf.HoldOnFailure())                                // refused
	r.Timer(pods, timer, kopf.Interval(1.5))                                  // refused
	r.Timer(pods, daemon)                                                     // refused
	r.Timer(pods, event)                                                      // refused

	r.OnCreate(pods, change, kopf.Interval(time.Second)) // refused
	r.OnUpdate(pods, change, kopf.Idle(time.Second))
	r.OnDelete(pods, change, kopf.CancellationTimeout(1))         // refused
	r.OnResume(pods, change, kopf.InitialDelay(time.Second))      // refused
	r.OnEvent(pods, event, kopf.Sharp())                          // refused
	r.OnField(pods, "spec", change, kopf.InitialDelayFunc(delay)) // refused
}

func delay(kopf.Arguments) time.Duration { return time.Second }

func schedule(kopf.Arguments) (string, error) { return "@daily", nil }

func indices(r *kopf.Registry) {
	kopf.NewIndex(r, pods, indexing, kopf.ID("a"), kopf.Param(1), kopf.Labels(filters), kopf.Annotations(filters), kopf.When(agree))
	kopf.NewIndex(r, pods, indexing, kopf.Retries(1), kopf.Timeout(time.Second), kopf.Backoff(time.Second), kopf.Errors(kopf.ErrorsTemporary))
	kopf.NewIndex(r, pods, indexing, kopf.Field("spec"), kopf.Value(there))
	kopf.NewIndex(r, pods, indexing, kopf.Interval(time.Second))     // refused
	kopf.NewIndex(r, pods, indexing, kopf.InitialDelay(time.Second)) // refused
	kopf.NewIndex(r, pods, indexing, kopf.CancellationTimeout(1))    // refused
	kopf.NewIndex(r, pods, indexing, kopf.ValueBefore(there))        // refused
	kopf.NewIndex(r, pods, indexing, kopf.Optional())                // refused
	kopf.NewIndex(r, pods, change)                                   // refused
	kopf.NewIndexOf(kopf.For[*corev1.Pod](r), indexing)              // refused
	var numbers *kopf.Index[string, int] = kopf.NewIndex(r, pods, indexing)
	var names *kopf.Index[string, string] = kopf.NewIndex(r, pods, indexing) // refused
	_ = numbers.Get("a")
	_ = numbers.Get(1) // refused
	_ = names
}

func memos(c *kopf.Change, t *kopf.Tick, i *kopf.Indexed, a kopf.Arguments) {
	counts := memo.New(func() int { return 1 }, nil)
	var count int = counts.Of(c) + counts.Of(t) + counts.Of(i) + counts.Operator(a)
	var text string = counts.Of(c) // refused
	i.Patch()                      // refused
	_, _ = count, text
}

func subhandlers(c *kopf.Change) {
	c.Subhandler("a", change, kopf.Param(1), kopf.Labels(filters), kopf.Annotations(filters), kopf.When(agree))
	c.Subhandler("a", change, kopf.Retries(1), kopf.Timeout(time.Second), kopf.Backoff(time.Second), kopf.Errors(kopf.ErrorsIgnored))
	c.Subhandler("a", change, kopf.Field("spec"), kopf.Value(there))
	c.Subhandler("a", change, kopf.ValueBefore(there), kopf.ValueAfter(there))
	c.Subhandler(change) // refused
}
