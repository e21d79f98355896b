package kopftest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// run runs the test of an example, as `go test` does.
func run(test func(t *testing.T)) { fmt.Println("passed:", runOnce(test)) }

// runOnce runs a test in this process, once and without the lines of -v, whatever the flags say.
func runOnce(test func(t *testing.T)) (passed bool) {
	defer set("test.v", "false")()
	defer set("test.count", "1")()
	return testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "TestBuckets", F: test}})
}

// set sets a flag, and returns what restores it.
func set(name, value string) (restore func()) {
	chosen := flag.Lookup(name).Value
	before := chosen.String()
	_ = chosen.Set(value)                    // it is valid
	return func() { _ = chosen.Set(before) } // it was valid
}

// newGreeter declares handlers. Most programs have such a function.
func newGreeter() *kopf.Registry {
	r := kopf.NewRegistry()
	r.OnCreate(kopf.Resource("v1", "configmaps"), func(_ context.Context, c *kopf.Change) error {
		if c.Retry() == 0 {
			return kopf.Temporary(errors.New("too early"), time.Hour)
		}
		c.Patch().Set("hello", "data", "greeting")
		return nil
	}, kopf.ID("greet"))
	return r
}

func newConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
}

// A handler that is retried after an hour is tested in virtual time.
func ExampleNew() {
	run(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := kopftest.New(t, newGreeter)
			object := newConfigMap()
			h.Create(object)
			h.Advance(time.Hour)
			h.Get(object)
			for _, call := range h.Calls("greet") {
				fmt.Println(call)
			}
			fmt.Println(object.Data, "with", len(h.Writes()), "writes")
		})
	})
	// Output:
	// greet of default/one, attempt 1, failed: too early
	// greet of default/one, attempt 2, succeeded
	// map[greeting:hello] with 3 writes
	// passed: true
}

// One handler is called with the arguments of an update.
func ExampleCall() {
	run(func(t *testing.T) {
		before, after := newConfigMap(), newConfigMap()
		after.Data = map[string]string{"size": "2"}
		outcome := kopftest.Call(t, func(_ context.Context, c *kopf.Change) error {
			c.SetResult(c.Diff().String())
			return nil
		}, after, kopftest.Old(before))
		fmt.Println(outcome.Result, outcome.Err)
	})
	// Output:
	// add data: {"size":"2"} <nil>
	// passed: true
}

// The scenario is repeated with a crash, a lost answer, an error, and a conflict at each write.
// The child is created once, whatever happens.
func ExampleSweep() {
	newParent := func() *kopf.Registry {
		r := kopf.NewRegistry()
		r.OnCreate(kopf.Resource("v1", "configmaps"), func(ctx context.Context, c *kopf.Change) error {
			child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(), Name: c.Name()}}
			return client.IgnoreAlreadyExists(c.Client().Create(ctx, child))
		}, kopf.ID("child"))
		return r
	}
	run(func(t *testing.T) {
		kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
			h := kopftest.New(t, newParent, fault)
			h.Create(newConfigMap())
			h.Settle()
		})
	})
	// Output:
	// passed: true
}

// The effects of a handler are counted in the fake of an external system.
func ExampleEffect() {
	newSender := func() *kopf.Registry {
		r := kopf.NewRegistry()
		r.OnCreate(kopf.Resource("v1", "configmaps"), func(ctx context.Context, _ *kopf.Change) error {
			kopftest.Effect(ctx, "mail sent")
			return nil
		}, kopf.ID("send"))
		return r
	}
	run(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := kopftest.New(t, newSender)
			h.Create(newConfigMap())
			h.Settle()
			fmt.Println(h.Effects("mail sent"))
		})
	})
	// Output:
	// 1
	// passed: true
}

// Children go when their owner is gone, and when the test asks for it.
func ExampleHarness_CollectGarbage() {
	run(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := kopftest.New(t, newGreeter)
			parent := newConfigMap()
			h.Create(parent)
			child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: parent.Name, UID: parent.UID},
			}}}
			h.Create(child)
			h.Delete(parent)
			h.CollectGarbage()
			fmt.Println(h.Exists(parent), h.Exists(child))
		})
	})
	// Output:
	// false false
	// passed: true
}

// In real time, for any framework: the operator runs on an API server in memory.
func ExampleRun() {
	run(func(t *testing.T) {
		config := kopftest.NewAPIServer(t).Config()
		operator := kopftest.Run(t, config, newGreeter())
		fmt.Println(operator.State().Ready)
	})
	// Output:
	// true
	// passed: true
}

// An operator records what it sees, and the same handlers decide in the same way.
func ExampleReplay() {
	run(func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "recording")
		synctest.Test(t, func(t *testing.T) {
			h := kopftest.New(t, newGreeter, kopftest.Settings(func(s *kopf.Settings) { s.Recording.File = file }))
			h.Create(newConfigMap())
			h.Advance(time.Hour)
		})
		kopftest.Replay(t, file, newGreeter())
	})
	// Output:
	// passed: true
}
