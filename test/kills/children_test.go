package kills

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/test/testenv"
)

// The kinds of a shop and of its children.
var (
	shopKind    = schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"}
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	services    = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	configMaps  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	claims      = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	jobs        = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
)

// shop is the life of a parent and its children, which are in two namespaces.
type shop struct {
	*life
	far    string // the namespace that the garbage collector does not reach from the parent
	parent *unstructured.Unstructured
	// stages are the ends of the stages so far, and expected those of the life without a kill.
	stages, expected []stage
}

// stage is how everything is at the end of a stage.
type stage struct {
	writes  int // so far
	objects map[string]string
}

func newShop(t *testing.T, k kill) *shop {
	t.Helper()
	s := &shop{far: cluster.Namespace(t)}
	s.life = newLife(t, k, s.declareHandlers)
	s.parent = testenv.NewObject("KopfExample", s.namespace, "one", map[string]any{"size": int64(1), "image": "a", "kinds": []any{
		"Deployment", "Service", "ConfigMap", "PersistentVolumeClaim", "Job",
	}})
	return s
}

// The operator is killed at every write of a life with all that can happen to children.
func TestChildrenSurviveAKillAtEveryWrite(t *testing.T) {
	t.Parallel()
	var quiet *shop
	sweep(t, func(t *testing.T, k kill) (writes int) {
		t.Helper()
		s := newShop(t, k)
		if quiet != nil {
			s.expected = quiet.stages
		} else {
			quiet = s
		}
		s.live()
		return s.count()
	})
}

// The operator is killed while it creates the children, and then fewer are wanted: its successor
// finds those that are too many.
func TestChildrenThatAreNotWantedAfterAKillAreDeleted(t *testing.T) {
	t.Parallel()
	sweep(t, func(t *testing.T, k kill) (writes int) {
		t.Helper()
		s := newShop(t, k)
		change := func() { s.as("kubectl", s.parent, `{"spec":{"kinds":["Deployment"],"near":true}}`) }
		s.afterDeath = change
		s.start()
		s.create()
		if k.number == 0 {
			s.eventually("created", s.handled(`"size":1`))
			s.rest()
			writes = s.count() // only the creation has kills
			change()
		}
		s.eventually("changed", s.handled(`"near":true`))
		s.rest()
		s.eventually("changed", func(g gomega.Gomega) {
			left, err := s.look()
			g.Expect(err).NotTo(gomega.HaveOccurred())
			delete(left, "PersistentVolumeClaim near/one") // the claim is there if it was created before the kill
			g.Expect(slices.Sorted(maps.Keys(left))).To(gomega.Equal([]string{"Deployment near/one", "KopfExample near/one"}))
		})
		for _, w := range s.done() {
			s.Expect(w.method == "DELETE" && w.target() == "persistentvolumeclaims/one").To(gomega.BeFalse(), s.story)
		}
		s.expectRest()
		return max(writes, k.number)
	})
}

func (s *shop) declareHandlers(r *kopf.Registry) {
	r.Ensure(examples, s.children, kopf.ID("children"), kopf.Recreate("Job.batch"))
	r.OnDrift(examples, func(_ context.Context, d *kopf.Drift) (kopf.Resolution, error) {
		if d.Key().Kind == deployments.Kind && !d.Deleted() {
			return kopf.AcceptDrift(), nil
		}
		return kopf.RestoreDrift(), nil
	}, kopf.ID("drift"))
}

// children returns the children of the kinds in the spec, and a config map in the other namespace,
// unless all must be near.
func (s *shop) children(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	size, _ := c.Spec().Int64("size")
	image, _ := c.Spec().String("image")
	kinds, _ := c.Spec().Strings("kinds")
	pod := map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "main", "image": image}}}
	app := map[string]any{"app": c.Name()}
	all := []client.Object{
		s.object(deployments, map[string]any{"replicas": size, "selector": map[string]any{"matchLabels": app}, "template": map[string]any{
			"metadata": map[string]any{"labels": app}, "spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "shop:1"}}},
		}}),
		s.object(services, map[string]any{"selector": app, "ports": []any{map[string]any{"port": int64(80)}}}),
		s.object(claims, map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1024Mi"}},
		}),
		s.object(jobs, map[string]any{"template": map[string]any{"spec": pod}}),
		s.config(s.namespace, size),
	}
	all = slices.DeleteFunc(all, func(child client.Object) bool {
		return !slices.Contains(kinds, child.GetObjectKind().GroupVersionKind().Kind)
	})
	if isNear, _ := c.Spec().Bool("near"); isNear {
		return all, nil
	}
	return append(all, s.config(s.far, size)), nil
}

// object returns a child in the namespace of the parent.
func (s *shop) object(kind schema.GroupVersionKind, spec map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace(s.namespace)
	obj.SetName("one")
	return obj
}

func (s *shop) config(namespace string, size int64) *unstructured.Unstructured {
	obj := s.object(configMaps, nil)
	obj.Object["data"] = map[string]any{"size": fmt.Sprint(size), "theme": "dark"}
	delete(obj.Object, "spec")
	obj.SetNamespace(namespace)
	return obj
}

const allKinds = `["Deployment","Service","ConfigMap","PersistentVolumeClaim","Job"]`

func (s *shop) live() {
	s.t.Helper()
	s.start()
	s.create()
	s.end("created", s.handled(`"size":1`), s.exists(services, claims, jobs))

	s.as("kubectl", s.parent, `{"spec":{"size":2}}`)
	s.end("changed", s.handled(`"size":2`), s.has(deployments, "spec.replicas", int64(2)), s.has(configMaps, "data.size", "2"))

	s.as("kubectl", s.parent, `{"spec":{"kinds":["Deployment","ConfigMap","Job"]}}`)
	s.end("pruned", s.handled(`["Deployment","ConfigMap","Job"]`), s.gone(services), s.exists(claims))

	s.as("kubectl-edit", s.config(s.namespace, 0), `{"data":{"theme":"light"}}`)
	s.end("a field drifted", s.has(configMaps, "data.theme", "dark"))
	s.as("autoscaler", s.object(deployments, nil), `{"spec":{"replicas":7}}`)
	s.end("a drift was accepted", s.has(deployments, "metadata.annotations", gomega.HaveKeyWithValue(convergence.MarksAnnotation, gomega.ContainSubstring("accepted"))))
	s.as("kubectl-label", s.config(s.namespace, 0), `{"metadata":{"labels":{"`+convergence.OwnerLabel+`":null}}}`)
	s.end("a label was removed", s.has(configMaps, "metadata.labels", gomega.HaveKey(convergence.OwnerLabel)))
	s.Expect(cluster.Client().Delete(s.t.Context(), s.config(s.far, 0))).To(gomega.Succeed())
	s.end("a child was deleted", func(g gomega.Gomega) { g.Expect(cluster.Exists(s.config(s.far, 0))()).To(gomega.BeTrue()) })

	s.as("kubectl", s.parent, `{"spec":{"image":"b","kinds":`+allKinds+`}}`)
	s.end("recreated", s.handled(`"image":"b"`), s.exists(services, jobs), s.has(jobs, "spec.template.spec.containers", gomega.ContainElement(gomega.HaveKeyWithValue("image", "b"))))
	s.expectRest()

	s.Expect(cluster.Client().Delete(s.t.Context(), s.parent.DeepCopy())).To(gomega.Succeed())
	s.end("deleted", s.gone(shopKind), func(g gomega.Gomega) { g.Expect(cluster.Exists(s.config(s.far, 0))()).To(gomega.BeFalse()) })
	s.expectIdentities()
}

// create creates the parent.
func (s *shop) create() {
	s.t.Helper()
	s.Expect(cluster.Client().Create(s.t.Context(), s.parent, client.FieldOwner("kubectl"))).To(gomega.Succeed())
}

// as changes an object as another client does.
func (s *shop) as(manager string, obj *unstructured.Unstructured, merge string) {
	s.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(merge))
	s.Expect(cluster.Client().Patch(s.t.Context(), obj.DeepCopy(), patch, client.FieldOwner(manager))).To(gomega.Succeed())
}

// These are conditions at the end of a stage.
type condition = func(g gomega.Gomega)

// handled expects that the parent has no records, and was handled in a state with the text.
func (s *shop) handled(text string) condition {
	return func(g gomega.Gomega) {
		g.Expect(cluster.Current(s.parent)()).To(testenv.HavePath("metadata.annotations", gomega.And(
			gomega.HaveKeyWithValue("kopf.zalando.org/last-handled-configuration", gomega.ContainSubstring(text)),
			gomega.Not(gomega.HaveKey("kopf.zalando.org/children")),
		)))
	}
}

func (s *shop) has(kind schema.GroupVersionKind, path string, value any) condition {
	return func(g gomega.Gomega) {
		g.Expect(cluster.Current(s.object(kind, nil))()).To(testenv.HavePath(path, value))
	}
}

func (s *shop) exists(kinds ...schema.GroupVersionKind) condition {
	return func(g gomega.Gomega) {
		for _, kind := range kinds {
			g.Expect(cluster.Exists(s.object(kind, nil))()).To(gomega.BeTrue(), kind.Kind)
		}
	}
}

func (s *shop) gone(kind schema.GroupVersionKind) condition {
	return func(g gomega.Gomega) { g.Expect(cluster.Exists(s.object(kind, nil))()).To(gomega.BeFalse()) }
}

// end waits for the end of a stage, which must be that of the life without a kill.
func (s *shop) end(name string, conditions ...condition) {
	s.t.Helper()
	for _, condition := range conditions {
		s.eventually(name, condition)
	}
	if s.expected == nil {
		s.rest()
		now, err := s.look()
		s.Expect(err).NotTo(gomega.HaveOccurred())
		s.stages = append(s.stages, stage{s.count(), now})
		return
	}
	want := s.expected[len(s.stages)]
	s.stages = append(s.stages, want)
	s.eventually(name, func(g gomega.Gomega) {
		g.Expect(s.count()).To(gomega.BeNumerically(">=", min(want.writes, s.kill.number)))
		now, err := s.look()
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(differences(want.objects, now)).To(gomega.BeEmpty())
	})
}

// look returns the parent and the children as they are now.
func (s *shop) look() (map[string]string, error) {
	owner := convergence.OwnerLabel // of the children, which have one owner
	if deployment, err := cluster.Current(s.object(deployments, nil))(); err == nil {
		owner = deployment.GetLabels()[convergence.OwnerLabel]
	}
	names := strings.NewReplacer(s.namespace, "near", s.far, "far", string(s.parent.GetUID()), "PARENT", owner, "OWNER")
	all, err := s.snapshot(names, []string{s.namespace, s.far}, shopKind, deployments, services, configMaps, claims, jobs)
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasSuffix(key, "/kube-root-ca.crt") })
	return all, err
}

// expectRest expects that another operator finds nothing to do.
func (s *shop) expectRest() {
	s.t.Helper()
	before := len(s.done())
	s.restart()
	s.rest()
	s.Expect(s.done()[before:]).To(gomega.BeEmpty(), s.story)
}

// expectIdentities expects that each child was created and deleted as often as it must be: the job
// was recreated, the service was pruned and wanted again, another client has deleted the config map
// in the other namespace, and nothing deletes the claim.
func (s *shop) expectIdentities() {
	s.t.Helper()
	identities, deletions := map[string]map[types.UID]bool{}, map[string]int{}
	for _, w := range s.done() {
		switch {
		case !w.hasSucceeded():
		case w.method == "DELETE":
			deletions[w.target()]++
		default:
			if identities[w.target()] == nil {
				identities[w.target()] = map[types.UID]bool{}
			}
			identities[w.target()][w.uid()] = true
		}
	}
	counts := map[string]int{}
	for target, uids := range identities {
		counts[target] = len(uids)
	}
	s.Expect(deletions).To(gomega.Equal(map[string]int{"services/one": 1, "jobs/one": 1, "configmaps/one": 1}), s.story)
	s.Expect(counts).To(gomega.Equal(map[string]int{
		"kopfexamples/one": 1, "deployments/one": 1, "services/one": 2, "persistentvolumeclaims/one": 1, "jobs/one": 2,
		"configmaps/one": 3, // one here, and two in the other namespace
	}), s.story)
}
