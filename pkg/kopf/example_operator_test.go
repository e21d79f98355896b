package kopf_test

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/lifecycles"
)

// The state of an operator, for a status page of the program.
func ExampleNewOperator() {
	registry := kopf.NewRegistry()
	registry.OnCreate(volumeclaims, createClaim)
	operator, err := kopf.NewOperator(kopf.Options{Registry: registry, Config: nowhere()})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // enough for an example
	fmt.Println("ready:", operator.State().Ready)
	fmt.Println(operator.Run(ctx))
	select {
	case <-operator.Ready():
		fmt.Println("it was ready")
	default:
		fmt.Println("it was never ready")
	}
	// Output:
	// ready: false
	// <nil>
	// it was never ready
}

// The options of a program, with a scheme for typed handlers and some settings.
func ExampleMain() {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme) // and those of your own types
	kopf.Main(func(o *kopf.Options) {
		o.Scheme = scheme
		o.Settings.Execution.Backoff = backoff.Exponential(time.Second, 10*time.Minute)
		o.Settings.Execution.Lifecycle = lifecycles.OneByOne
		o.Settings.Queueing.ContentionDelays = []time.Duration{} // disabled
	})
}

// Functions that handlers call find the client in the context.
func ExampleClientFrom() {
	countPods := func(ctx context.Context, namespace string) (int, error) {
		pods := &corev1.PodList{}
		err := kopf.ClientFrom(ctx).List(ctx, pods, client.InNamespace(namespace))
		return len(pods.Items), err
	}
	kopf.OnCreate(volumeclaims, func(ctx context.Context, c *kopf.Change) error {
		pods, err := countPods(ctx, c.Namespace())
		c.SetResult(map[string]any{"pods": pods})
		return err
	}, kopf.ID("count"))
}

// A cleanup handler and a probe of the whole operator.
func ExampleOnProbe() {
	started := time.Now()
	kopf.OnProbe(func(context.Context, *kopf.Activity) (any, error) {
		return time.Since(started).String(), nil // under the id in the answer of /healthz
	}, kopf.ID("uptime"))
	kopf.OnCleanup(func(_ context.Context, a *kopf.Activity) error {
		a.Logger().Info("bye", "uptime", time.Since(started).String())
		return nil
	}, kopf.ID("bye"))
	var options kopf.Options
	options.Settings.Health.Address = ":8080"
	_ = kopf.Run(ctrl.SetupSignalHandler(), options)
}

// Events about the handled object, and about others.
func ExampleEventFor() {
	notify := func(ctx context.Context, c *kopf.Change) error {
		kopf.Event(ctx, "Audit", "Resized", "The volume has another size.")
		pvc := &corev1.PersistentVolumeClaim{}
		if err := c.Client().Get(ctx, client.ObjectKey{Namespace: c.Namespace(), Name: c.Name()}, pvc); err != nil {
			return err
		}
		return kopf.EventFor(ctx, pvc, corev1.EventTypeNormal, "Resized", "The claim has another size.")
	}
	kopf.OnField(volumeclaims, "spec.size", notify, kopf.ID("notify"))
}

// The command line of a program with a manager of controller-runtime also answers questions:
// "manager explain kopfexample/kopf-example-1".
func ExampleCommands() {
	registry := kopf.NewRegistry()
	registry.OnCreate(volumeclaims, createClaim)
	root := &cobra.Command{Use: "manager"}
	root.AddCommand(kopf.Commands(func(o *kopf.Options) { o.Registry = registry })...)
	for _, command := range root.Commands() {
		fmt.Println(command.Name())
	}
	// Output:
	// explain
	// manifests
	// page
	// peers
	// plan
	// rbac
	// release
	// rerun
	// retry
	// shards
	// skip
	// suspend
	// unsuspend
}

// Scripts can rely on the exit codes: here, of a command without an argument that it needs.
func ExampleExitCode() {
	root := &cobra.Command{Use: "manager", SilenceErrors: true}
	root.AddCommand(kopf.Commands()...)
	root.SetArgs([]string{"explain"})
	err := root.Execute()
	fmt.Println(kopf.ExitCode(err), kopf.ExitCode(nil)) // a program passes the first one to os.Exit

	// Output: 2 0
}

// Settings in the program. Unlike those of a startup handler, they are known to commands such as
// explain.
func ExampleConfigure() {
	registry := kopf.NewRegistry() // kopf.Configure is for the default one
	registry.Configure(func(s *kopf.Settings) { s.Execution.Workers = -1 })
	_, err := kopf.NewOperator(kopf.Options{Registry: registry, Config: nowhere()})
	fmt.Println(err != nil)

	// Output: true
}
