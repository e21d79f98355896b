package kopftest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// In real time, on the API server in memory: as suites of other frameworks do it.
func TestRunInRealTime(t *testing.T) {
	called := make(chan string, 1)
	r := kopf.NewRegistry()
	r.OnEvent(kopf.Resource("v1", "configmaps"), func(_ context.Context, e *kopf.WatchEvent) error {
		called <- e.Name()
		return nil
	}, kopf.ID("seen"))
	config := kopftest.NewAPIServer(t).Config()
	operator := kopftest.Run(t, config, r)
	object := kopftest.Object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: default}}`)
	if err := clientFor(t, config).Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	select {
	case name := <-called:
		if name != "one" || !operator.State().Ready {
			t.Errorf("got %s, and state %+v", name, operator.State())
		}
	case <-time.After(time.Minute):
		t.Error("the handler is not called")
	}
}

func clientFor(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	made, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// A goroutine that a handler leaves behind fails the test, with its stack.
func TestRunFindsLeaks(t *testing.T) {
	release := make(chan struct{})
	passed, output := runAlone(t, func(t *testing.T) {
		called := make(chan struct{})
		r := kopf.NewRegistry()
		r.OnCreate(kopf.Resource("v1", "configmaps"), func(context.Context, *kopf.Change) error {
			go leakedByTheHandler(release)
			close(called)
			return nil
		}, kopf.ID("leak"))
		config := kopftest.NewAPIServer(t).Config()
		kopftest.Run(t, config, r)
		object := kopftest.Object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: default}}`)
		if err := clientFor(t, config).Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		<-called
	})
	close(release)
	if passed || !strings.Contains(output, "leakedByTheHandler") {
		t.Errorf("got %s", output)
	}
}

func leakedByTheHandler(release <-chan struct{}) { <-release }
