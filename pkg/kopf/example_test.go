package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/diff"
)

var volumeclaims = kopf.Resource("example.com", "v1", "ephemeralvolumeclaims")

func createClaim(ctx context.Context, c *kopf.Change) error {
	size, ok := c.Spec().String("size")
	if !ok {
		return kopf.Permanent(errors.New("spec.size must be set"))
	}
	quantity, err := resource.ParseQuantity(size)
	if err != nil {
		return kopf.Permanent(fmt.Errorf("spec.size: %w", err))
	}
	pvc := &corev1.PersistentVolumeClaim{}
	pvc.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pvc.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity}
	if err := hierarchy.Adopt(ctx, pvc); err != nil {
		return err
	}
	if err := c.Client().Create(ctx, pvc); err != nil {
		return err
	}
	c.SetResult(map[string]any{"pvc-name": pvc.Name}) // -> status.createClaim
	return nil
}

// This operator creates a claim for every object. It calls the handler until it succeeds,
// at most five times.
func Example() {
	kopf.OnCreate(volumeclaims, createClaim, kopf.Retries(5), kopf.Backoff(10*time.Second))
	kopf.Main()
}

func ExampleOnCreate() {
	kopf.OnCreate(volumeclaims, createClaim, kopf.Timeout(time.Hour))
	// The same function handles objects that existed before the operator started. It is
	// called once for each of them.
	kopf.OnResume(volumeclaims, createClaim)
}

func ExampleOnUpdate() {
	resize := func(ctx context.Context, c *kopf.Change) error {
		c.Logger().Info("resizing", "from", c.Old().String(), "to", c.New().String())
		kopf.Info(ctx, "Resized", "The volume has got another size.")
		return nil
	}
	kopf.OnUpdate(volumeclaims, resize, kopf.ID("resize"), kopf.Field("spec.size"), kopf.ValueAfter(kopf.Present()))
}

func ExampleOnDelete() {
	backup := func(context.Context, *kopf.Change) error {
		return kopf.Temporary(errors.New("the backup is still running"), 30*time.Second)
	}
	// The object stays until the backup is done. The second handler does not keep it.
	kopf.OnDelete(volumeclaims, backup, kopf.ID("backup"))
	forget := func(context.Context, *kopf.Change) error { return nil }
	kopf.OnDelete(volumeclaims, forget, kopf.ID("forget"), kopf.Optional())
}

// Other tools see whether an object is ready: kubectl wait --for=condition=Ready.
func ExampleConditions() {
	kopf.OnCreate(volumeclaims, func(ctx context.Context, c *kopf.Change) error {
		c.SetCondition(metav1.Condition{Type: "Encrypted", Status: metav1.ConditionFalse, Reason: "NotSupported"})
		return createClaim(ctx, c)
	}, kopf.ID("create"))
	kopf.Conditions(volumeclaims)
}

func ExampleOnField() {
	relabel := func(_ context.Context, c *kopf.Change) error {
		for _, item := range c.Diff() { // relative to the field
			switch item.Op {
			case diff.Add, diff.Change:
				c.Logger().Info("a label is set", "label", item.Path.String(), "value", item.New)
			case diff.Remove:
				c.Logger().Info("a label is gone", "label", item.Path.String())
			}
		}
		return nil
	}
	kopf.OnField(volumeclaims, "metadata.labels", relabel, kopf.ID("relabel"))
}

func ExampleOnEvent() {
	kopf.OnEvent(kopf.Resource("v1", "pods"), func(_ context.Context, e *kopf.WatchEvent) error {
		phase, _ := e.Status().String("phase")
		e.Logger().Info("a pod was seen", "event", e.Type(), "phase", phase)
		return nil
	}, kopf.ID("watchPods"), kopf.Labels(map[string]kopf.Matcher{"app": kopf.Equal("db")}))
}

// For declares handlers of typed objects, as in a kubebuilder project.
func ExampleFor() {
	registry := kopf.NewRegistry()
	pods := kopf.For[*corev1.Pod](registry)
	pods.OnUpdate(func(_ context.Context, pod *corev1.Pod, c *kopf.Change) error {
		var before corev1.Pod
		known, err := c.DecodeOld(&before)
		if err != nil {
			return err
		}
		if known && before.Spec.NodeName != pod.Spec.NodeName {
			kopf.Update(c, func(pod *corev1.Pod) error {
				metav1.SetMetaDataLabel(&pod.ObjectMeta, "scheduled", "yes")
				return nil
			})
		}
		return nil
	}, kopf.ID("scheduled"))
}

// Each sub-handler has its own retries, and succeeds once.
func ExampleChange() {
	kopf.OnCreate(volumeclaims, func(ctx context.Context, c *kopf.Change) error {
		items, _ := c.Spec().Strings("items")
		for _, item := range items {
			c.Subhandler(item, func(_ context.Context, c *kopf.Change) error {
				c.SetResult("done: " + item) // -> status.createItems/<item>
				return nil
			}, kopf.Retries(3))
		}
		if err := c.Execute(ctx); err != nil { // now, and not after the return
			return err
		}
		c.Logger().Info("all parts are done")
		return nil
	}, kopf.ID("createItems"))
}

// Run runs an operator inside of a program.
func ExampleRun() {
	registry := kopf.NewRegistry()
	registry.OnCreate(volumeclaims, createClaim)
	var settings kopf.Settings
	settings.Scope.Namespaces = []string{"default"}
	settings.Execution.Workers = 10
	if err := kopf.Run(ctrl.SetupSignalHandler(), kopf.Options{Registry: registry, Settings: settings}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// Add adds the handlers to a controller-runtime manager.
func ExampleAdd() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	registry := kopf.NewRegistry()
	registry.OnCreate(volumeclaims, createClaim)
	if _, err := kopf.Add(mgr, kopf.Options{Registry: registry}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// An operator reports all mistakes in declarations at once when it starts.
func ExampleRegistry() {
	registry := kopf.NewRegistry()
	registry.OnCreate(volumeclaims, createClaim, kopf.Retries(0))
	registry.OnUpdate(kopf.Selector{}, createClaim)
	err := kopf.Run(context.Background(), kopf.Options{Registry: registry, Config: nowhere()})
	fmt.Println(withoutLines(err))
	// Output:
	// the declarations of handlers are invalid:
	// kopf/example_test.go: the create handler "createClaim": kopf.Retries(0) allows no attempt: the number includes the first attempt, so it must be at least 1
	// kopf/example_test.go: the update handler "createClaim": it has no resource: specify one with kopf.Resource(...), or pass a pointer to a Go type to kopf.For
}

func ExampleTemporary() {
	err := kopf.Temporary(errors.New("the volume is not bound yet"), time.Minute)
	var temporary *kopf.TemporaryError
	fmt.Println(errors.As(err, &temporary), temporary.Delay, err)
	// Output: true 1m0s the volume is not bound yet
}

func ExamplePermanent() {
	err := kopf.Permanent(fmt.Errorf("spec.size: %w", os.ErrInvalid))
	fmt.Println(errors.Is(err, os.ErrInvalid), err)
	// Output: true spec.size: invalid argument
}

// Adopt prepares a child of the handled object. Then create it.
func ExampleAdopt() {
	ctx := handling() // what a handler gets
	child := &corev1.ConfigMap{}
	if err := hierarchy.Adopt(ctx, child); err != nil {
		fmt.Println(err)
	}
	fmt.Println(child.Namespace, child.GenerateName, child.Labels, child.OwnerReferences[0].Name)
	// Output: ns example- map[team:blue] example
}

// AppendOwner makes the handled object itself a child, here of a pod.
func ExampleAppendOwner() {
	follow := func(ctx context.Context, c *kopf.Change) error {
		pod := &corev1.Pod{}
		name, _ := c.Spec().String("pod")
		if err := c.Client().Get(ctx, client.ObjectKey{Namespace: c.Namespace(), Name: name}, pod); err != nil {
			return err
		}
		return hierarchy.AppendOwner(ctx, c, pod, hierarchy.NotController()) // written with the patch
	}
	kopf.OnCreate(volumeclaims, follow, kopf.ID("follow"))
}

// The second attempt follows after a second, the third after two more, and so on, up to
// ten minutes; a fifth less at most, by chance.
func ExampleExponentialBackoff() {
	kopf.OnCreate(volumeclaims, createClaim, kopf.ExponentialBackoff(time.Second, 10*time.Minute))
}

// Functions of your own can return options for all handlers that they fit.
func ExampleOption() {
	ours := func(team string) kopf.Option {
		return kopf.Labels(map[string]kopf.Matcher{"team": kopf.Equal(team)})
	}
	kopf.OnCreate(volumeclaims, createClaim, ours("blue"))
	kopf.Daemon(volumeclaims, monitor, ours("blue"))
}

func handling() context.Context {
	return hierarchy.WithOwner(context.Background(), hierarchy.Owner{
		APIVersion: "example.com/v1", Kind: "Example", Name: "example", Namespace: "ns", UID: "u-1", Labels: map[string]string{"team": "blue"},
	})
}
