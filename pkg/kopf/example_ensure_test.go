package kopf_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// The operator keeps the children as the function returns them. What the function leaves out,
// such as the number of replicas, belongs to others.
func ExampleEnsure() {
	shopFn := func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		theme, _ := c.Spec().String("theme")
		return []client.Object{
			&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-theme"},
				Data:       map[string]string{"theme": theme},
			},
			&corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: c.Name()},
				Spec: corev1.ServiceSpec{
					Selector: map[string]string{"shop": c.Name()},
					Ports:    []corev1.ServicePort{{Port: 80}},
				},
			},
		}, nil
	}
	kopf.Ensure(kopf.Resource("shops"), shopFn, kopf.ID("shopFn"))
}

// The web server is applied when the database is ready.
func ExampleInWave() {
	shopFn := func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		database, web := databaseOf(c), webOf(c)
		return append(kopf.InWave(-1, database), web), nil
	}
	kopf.Ensure(kopf.Resource("shops"), shopFn, kopf.ID("wavesFn"), kopf.WaitReady())
}

// The function reads an index. When the index changes, it is called for all objects.
func ExampleWatchIndex() {
	themes := kopf.NewIndex(kopf.DefaultRegistry, kopf.Resource("v1", "configmaps"), func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Labels()["shop-theme"]: i.Name()}, nil
	}, kopf.ID("themesFn"), kopf.Labels(map[string]kopf.Matcher{"shop-theme": kopf.Present()}))

	shopFn := func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		theme, _ := c.Spec().String("theme")
		return []client.Object{&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-themes"},
			Data:       map[string]string{"available": fmt.Sprint(themes.Has(theme))},
		}}, nil
	}
	kopf.Ensure(kopf.Resource("shops"), shopFn, kopf.ID("themedFn"), kopf.WatchIndex(themes))
}

// What could destroy something must be allowed.
func ExamplePrune() {
	stagesFn := func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		var stages []client.Object
		names, _ := c.Spec().Strings("stages")
		for _, name := range names {
			stages = append(stages, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-" + name}})
		}
		return stages, nil
	}
	kopf.Ensure(kopf.Resource("shops"), stagesFn, kopf.ID("stagesFn"),
		kopf.Prune("Namespace"),    // also namespaces, with all that is in them
		kopf.AllowEmpty(),          // also the last one
		kopf.AdoptExisting(),       // namespaces that exist already become children
		kopf.Recreate("Job.batch"), // a change that is impossible leads to a new Job
	)
}

func databaseOf(c *kopf.Change) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-database"}}
}

func webOf(c *kopf.Change) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-web"}}
}
