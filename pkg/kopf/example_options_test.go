package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func logChange(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("changed", "old", c.Old().String(), "new", c.New().String(), "param", c.Param())
	return nil
}

// One function can be declared several times, with a value for each declaration.
func ExampleParam() {
	for _, field := range []string{"size", "class"} {
		kopf.OnUpdate(volumeclaims, logChange, kopf.Field("spec."+field), kopf.Param(field))
	}
}

// Value compares the field as it is, and for updates also as it was. ValueBefore and
// ValueAfter select a transition.
func ExampleValue() {
	kopf.OnCreate(volumeclaims, logChange, kopf.Field("spec.class"), kopf.Value(kopf.Equal("fast")))
	kopf.OnUpdate(volumeclaims, logChange, kopf.Field("spec.class"),
		kopf.ValueBefore(kopf.Equal("slow")), kopf.ValueAfter(kopf.Equal("fast")))
}

func ExampleAnnotations() {
	kopf.OnCreate(volumeclaims, createClaim, kopf.Annotations(map[string]kopf.Matcher{"example.com/skip": kopf.Absent()}))
}

// The mode of errors applies to all errors that are neither temporary nor permanent.
func ExampleErrors() {
	best := func(context.Context, *kopf.Change) error { return errors.New("the mail server is down") }
	kopf.OnCreate(volumeclaims, best, kopf.ID("notify"), kopf.Errors(kopf.ErrorsIgnored))
}

// By default, the deletion of a claim that does not fit the Go type would wait.
func ExampleCallUntyped() {
	kopf.For[*corev1.PersistentVolumeClaim](kopf.DefaultRegistry).OnDelete(func(_ context.Context, _ *corev1.PersistentVolumeClaim, c *kopf.Change) error {
		if err := c.Misfit(); err != nil {
			c.Logger().Info("the claim is removed by its name", "reason", err.Error())
		}
		return nil
	}, kopf.ID("remove"), kopf.CallUntyped())
}

// A claim that does not fit the Go type is deleted without the handler.
func ExampleReleaseMisfits() {
	kopf.For[*corev1.PersistentVolumeClaim](kopf.DefaultRegistry).OnDelete(func(context.Context, *corev1.PersistentVolumeClaim, *kopf.Change) error {
		return nil
	}, kopf.ID("forget"), kopf.ReleaseMisfits())
}

// If the backup fails permanently, the object stays until a person has looked at it.
func ExampleHoldOnFailure() {
	backup := func(context.Context, *kopf.Change) error { return kopf.Permanent(errors.New("the disk is full")) }
	kopf.OnDelete(volumeclaims, backup, kopf.ID("backup"), kopf.HoldOnFailure())
}

// A resuming handler also sees the objects that were being deleted when the operator started.
func ExampleDeleted() {
	kopf.OnResume(volumeclaims, logChange, kopf.Deleted())
}

// A daemon that is slow to stop is logged every ten seconds.
func ExampleCancellationPolling() {
	kopf.Daemon(volumeclaims, monitor, kopf.CancellationPolling(10*time.Second))
}

// The webhook of a subresource, which stays in the cluster when the operator exits, and does
// not block requests while the operator is not running.
func ExampleSubresource() {
	scale := func(_ context.Context, a *kopf.Admission) error {
		if !a.DryRun() {
			a.Logger().Info("scaling", "user", a.UserInfo().Username)
		}
		return nil
	}
	kopf.OnValidate(kopf.Resource("apps", "v1", "deployments"), scale, kopf.ID("scale"),
		kopf.Subresource("scale"), kopf.Operations("UPDATE"),
		kopf.SideEffects(), kopf.Persistent(), kopf.IgnoreFailures())
}

// All volumes of all groups, and everything that users see with `kubectl get all`.
func ExampleSelector_by() {
	kopf.OnEvent(selector.By(selector.Fields{Kind: "Volume"}), seen, kopf.ID("volumes"))
	kopf.OnEvent(selector.By(selector.Fields{Category: "all"}), seen, kopf.ID("all"))
}

// All namespaced resources of one company.
func ExampleSelector_func() {
	ours := func(r selector.Resource) bool { return r.Group == "example.com" && r.Namespaced }
	kopf.OnEvent(selector.Func(ours), seen)
}

func seen(_ context.Context, e *kopf.WatchEvent) error {
	e.Logger().Info("seen", "resource", e.Resource().String())
	return nil
}

// What a matcher or a field handler gets can be absent, or have another type.
func ExampleMatchFunc_value() {
	isLarge := kopf.MatchFunc(func(size object.Value, _ kopf.Arguments) bool {
		number, isNumber := size.Int64()
		return isNumber && number > 100
	})
	asked(isLarge, int64(200), int64(50), "200", nil)
	// Output: true false false false
}

// An error that is caused by a limit wraps the error of the last attempt.
func ExampleHandlerRetriesError() {
	last := errors.New("the network is down")
	var err error = &kopf.HandlerRetriesError{ID: "createClaim", Retries: 3, Err: last}
	fmt.Println(errors.Is(err, last), err)
	// Output: true handler createClaim has used up its 3 attempts: the network is down
}

// A volume is upgraded when its backup is stored.
func ExampleAfter() {
	backup := func(context.Context, *kopf.Change) error { return nil }
	upgrade := func(context.Context, *kopf.Change) error { return nil }
	kopf.OnUpdate(volumeclaims, backup, kopf.ID("backup"))
	kopf.OnUpdate(volumeclaims, upgrade, kopf.ID("upgrade"), kopf.After("backup"))
}

// What a failed handler has left is repaired.
func ExampleAfterFailure() {
	upgrade := func(context.Context, *kopf.Change) error { return nil }
	restore := func(context.Context, *kopf.Change) error { return nil }
	kopf.OnUpdate(volumeclaims, upgrade, kopf.ID("upgrade"), kopf.Retries(3))
	kopf.OnUpdate(volumeclaims, restore, kopf.ID("restore"), kopf.AfterFailure("upgrade"))
}

// A person edits the configuration in several steps. The database restarts once, when nothing has changed for half a minute.
func ExampleIdle() {
	restart := func(_ context.Context, c *kopf.Change) error {
		c.Logger().Info("restarting", "changes", c.Diff()) // all of them
		return nil
	}
	kopf.OnUpdate(kopf.Resource("databases"), restart, kopf.Field("spec.config"), kopf.Idle(30*time.Second))
}

// At most five databases are created at the same time. The others wait for their turn.
func ExampleLimit() {
	createDatabase := func(ctx context.Context, c *kopf.Change) error {
		_ = ctx // for the requests to an API with a quota
		c.Logger().Info("created")
		return nil
	}
	registry := kopf.NewRegistry()
	registry.OnCreate(kopf.Resource("databases"), createDatabase, kopf.ID("create"), kopf.Limit(5))
}

// The handler has changed, and all objects must be handled again: two at first, then five, and
// then ten percent of all at a time. Objects from the time before revisions are adopted.
func ExampleRollout() {
	kopf.OnCreate(volumeclaims, createClaim,
		kopf.Revision("2024-02"), kopf.Baseline(),
		kopf.Rollout(rollout.First(2), rollout.Then(5), rollout.ThenPercent(10)),
	)
}

// A program that reads its declarations from a file names the file in messages about mistakes.
func ExampleDeclaredAt() {
	r := kopf.NewRegistry()
	r.OnCreate(kopf.Resource("kopfexamples"), func(context.Context, *kopf.Change) error { return nil },
		kopf.ID("create"), kopf.Retries(0), kopf.DeclaredAt("operator.yaml:7"))
	_, err := kopf.NewOperator(kopf.Options{Registry: r})
	fmt.Println(strings.Contains(err.Error(), `operator.yaml:7: the create handler "create": `))
	// Output: true
}
