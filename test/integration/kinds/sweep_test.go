package kinds

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var shops = kopf.Resource("kopf.dev", "v1", "kopfexamples")

// sweep is an operator with children of every built-in kind: one parent for each kind.
type sweep struct {
	*gomega.WithT
	*catalog
	t         *testing.T
	namespace string
	config    *rest.Config
	requests  *testenv.CountingTransport
	logs      *operators.Journal
	operator  *operators.Operator
	children  []*specimen

	mu     sync.Mutex
	decide func(*kopf.Drift) (kopf.Resolution, error)
	// told are the drifted fields since the last start or edit, and accepted those since the last edit
	// that are left to the other client.
	told     map[convergence.ChildKey][]convergence.DriftedField
	accepted map[convergence.ChildKey]map[string]bool
}

func newSweep(t *testing.T) *sweep {
	t.Helper()
	s := &sweep{WithT: gomega.NewWithT(t), t: t, namespace: cluster.Namespace(t), config: cluster.Config(), logs: &operators.Journal{}}
	s.requests = testenv.Count(s.config)
	s.catalog = newCatalog(t)
	for _, k := range s.kinds {
		s.children = append(s.children, s.specimens(k, s.namespace)...)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.logs)
		}
	})
	s.prepare()
	s.begin(restoring)
	return s
}

// prepare creates what some children need.
func (s *sweep) prepare() {
	s.t.Helper()
	privileged := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`))
	namespace := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": s.namespace}}}
	s.Expect(cluster.Client().Patch(s.t.Context(), namespace, privileged)).To(gomega.Succeed())
	class := object{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": object{"name": "sweep"}, "handler": "sweep", "overhead": object{"podFixed": object{"cpu": "1"}}}
	s.Expect(client.IgnoreAlreadyExists(cluster.Client().Create(s.t.Context(), &unstructured.Unstructured{Object: class}))).To(gomega.Succeed())
}

// begin forgets what was told, and lets the function decide about all drift from now on.
func (s *sweep) begin(decide func(*kopf.Drift) (kopf.Resolution, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decide, s.told, s.accepted = decide, map[convergence.ChildKey][]convergence.DriftedField{}, map[convergence.ChildKey]map[string]bool{}
}

func restoring(*kopf.Drift) (kopf.Resolution, error) { return kopf.RestoreDrift(), nil }

// accepting accepts one half of the fields, and restores the other one.
func (s *sweep) accepting(half uint32) func(*kopf.Drift) (kopf.Resolution, error) {
	return func(c *kopf.Drift) (kopf.Resolution, error) {
		var paths []string
		for _, field := range c.Fields() {
			hash := fnv.New32a()
			_, _ = hash.Write([]byte(field.Path))
			if hash.Sum32()>>4%2 == half {
				paths = append(paths, field.Path)
			}
		}
		if s.accepted[c.Key()] == nil {
			s.accepted[c.Key()] = map[string]bool{}
		}
		for _, path := range paths {
			s.accepted[c.Key()][path] = true
		}
		return kopf.AcceptFields(paths...), nil
	}
}

// start runs an operator that has seen nothing yet.
func (s *sweep) start() {
	s.t.Helper()
	r := kopf.NewRegistry()
	r.Ensure(shops, func(_ context.Context, c *kopf.Change) (all []client.Object, err error) {
		for _, child := range s.children {
			if child.parent() == c.Name() {
				all = append(all, child.ours.DeepCopy())
			}
		}
		return all, nil
	}, kopf.ID("children"))
	r.OnDrift(shops, func(_ context.Context, c *kopf.Drift) (kopf.Resolution, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told[c.Key()] = append(s.told[c.Key()], c.Fields()...)
		return s.decide(c)
	}, kopf.ID("drift"))
	s.requests.Reset()
	s.operator = operators.Start(s.t, s.config, s.namespace, r, func(o *kopf.Options) {
		o.Logger = s.logs.Logger()
		o.Settings.Name = "sweep"
	})
}

// each calls the function for all children, several at a time.
func (s *sweep) each(do func(child *specimen) error) {
	s.t.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	for _, child := range s.children {
		group.Go(func() error {
			if err := do(child); err != nil {
				s.t.Errorf("%s: %v", child.ours.GetName(), err)
			}
			return nil
		})
	}
	_ = group.Wait()
}

// patience is how long a test waits for all children of an object, which are handled one after another.
const patience = 5 * time.Minute

// expectEach waits until the condition holds for all children. On a busy machine, the operator computes for so long
// between two requests that it seems to be at rest.
func (s *sweep) expectEach(condition func(child *specimen) error) {
	s.t.Helper()
	s.each(func(child *specimen) error {
		var last error
		met := func(context.Context) (bool, error) { last = condition(child); return last == nil, nil }
		_ = wait.PollUntilContextTimeout(s.t.Context(), time.Second/10, patience, true, met) // last is clearer
		return last
	})
}

// expectRest waits until the operator has nothing left to do. All children must be accepted by the API server.
func (s *sweep) expectRest() {
	s.t.Helper()
	s.Eventually(cluster.AtRest(s.requests)).WithTimeout(patience).Should(gomega.BeTrue())
	s.Expect(s.logs.With("will be retried")).To(gomega.BeEmpty())
}

// One object of every built-in kind with every field set is created, is left alone at rest and by a restart, and
// is restored when another client has changed all fields, or has the accepted changes in the one half of them, and
// in the other one. Nothing else is changed, also by a restart.
func TestChildrenOfEveryKind(t *testing.T) {
	s := newSweep(t)
	defer s.clear()
	s.start()
	s.create()
	s.expectStored()
	s.expectImmutable()
	s.restart("the creation")
	s.edit("a restoration", restoring)
	for half := range uint32(2) {
		s.edit("an acceptance", s.accepting(half))
		s.restart("an acceptance")
		s.revoke()
	}
}

// create lets the operator create the children.
func (s *sweep) create() {
	s.t.Helper()
	for _, k := range s.kinds {
		s.Expect(cluster.Client().Create(s.t.Context(), testenv.NewObject("KopfExample", s.namespace, k.parent(), map[string]any{"x": int64(1)}))).To(gomega.Succeed())
	}
	s.expectRest()
	s.each(func(child *specimen) (err error) {
		child.live, err = cluster.Current(child.ours)()
		return err
	})
	s.Expect(s.told).To(gomega.BeEmpty())
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// expectStored expects that the API server stores all fields, with the exceptions that are known.
func (s *sweep) expectStored() {
	s.t.Helper()
	sent, stored := fields{}, fields{}
	for _, child := range s.children {
		s.note(sent, child.kind, child.ours)
		s.note(stored, child.kind, child.live)
	}
	s.t.Logf("%d children of %d kinds with %d fields", len(s.children), len(s.kinds), len(sent))
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if !stored[name] && whyUnstored(name) == "" {
			s.t.Errorf("the API server does not store %s", name)
		}
	}
}

// expectImmutable expects that the API server refuses or ignores each change of a field that is known to be immutable.
func (s *sweep) expectImmutable() {
	s.t.Helper()
	s.each(func(child *specimen) error {
		for _, path := range child.immutable() {
			changed := child.live.DeepCopy()
			transfer(changed.Object, child.theirs.Object, strings.Split(path, "."))
			if reflect.DeepEqual(changed.Object, child.live.Object) {
				continue
			}
			err := cluster.Client().Update(s.t.Context(), changed, client.FieldOwner("other"), client.DryRunAll)
			isIgnored := err == nil && reflect.DeepEqual(s.leavesOf(child.kind, changed), s.leavesOf(child.kind, child.live))
			if !apierrors.IsInvalid(err) && !isIgnored {
				return fmt.Errorf("the API server accepts a change of %s: %w", path, err)
			}
		}
		return nil
	})
}

// restart starts another operator, which must be content with the children.
func (s *sweep) restart(after string) {
	s.t.Helper()
	s.operator.Stop()
	s.mu.Lock()
	clear(s.told)
	s.mu.Unlock()
	s.start()
	s.expectRest()
	for child, drift := range s.told {
		s.t.Errorf("after %s, a restart finds that %s has drifted: %s", after, child, convergence.Fields(drift))
	}
	for _, r := range s.requests.Requests() {
		if r.Method != http.MethodGet && r.Method != testenv.MethodList && r.Method != testenv.MethodWatch && r.Resource != "selfsubjectaccessreviews" {
			s.t.Errorf("after %s, a restart writes: %s", after, r)
		}
	}
	s.compare(after + " and a restart")
}

// edit changes all children as another client.
func (s *sweep) edit(phase string, decide func(*kopf.Drift) (kopf.Resolution, error)) {
	s.t.Helper()
	s.begin(decide)
	s.each(func(child *specimen) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			current, err := cluster.Current(child.ours)()
			if err != nil {
				return err
			}
			child.edit = child.edited(current)
			return cluster.Client().Update(s.t.Context(), child.edit, client.FieldOwner("other"))
		})
	})
	s.expectRest()
	s.compare("an edit and " + phase)
	s.count(phase)
}

// count logs how many fields the other client has changed.
func (s *sweep) count(phase string) {
	s.t.Helper()
	changed, kept := 0, 0
	for _, child := range s.children {
		before, theirs := s.leavesOf(child.kind, child.live), s.leavesOf(child.kind, child.edit)
		for name := range s.wanted(child) {
			if reflect.DeepEqual(before[name], theirs[name]) {
				kept++
			} else {
				changed++
			}
		}
	}
	accepted := 0
	for _, paths := range s.accepted {
		accepted += len(paths)
	}
	s.t.Logf("before %s, another client has changed %d fields, and kept %d that are immutable or referred to; %d are accepted", phase, changed, kept, accepted)
}

// revoke takes all acceptances back.
func (s *sweep) revoke() {
	s.t.Helper()
	s.begin(restoring)
	s.each(func(child *specimen) error {
		merge := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, convergence.MarksAnnotation)
		return cluster.Client().Patch(s.t.Context(), child.ours.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge)), client.FieldOwner("other"))
	})
	s.expectRest()
	s.compare("the end of an acceptance")
}

// compare compares the children with what they must be: the fields of the function are as the operator has created
// them, unless they are accepted, and all others are as the other client has left them.
func (s *sweep) compare(phase string) {
	s.t.Helper()
	s.expectEach(func(child *specimen) error {
		result, err := cluster.Current(child.ours)()
		if err != nil {
			return err
		}
		ours, before, now := s.wanted(child), s.leavesOf(child.kind, child.live), s.leavesOf(child.kind, result)
		theirs := before
		if child.edit != nil {
			theirs = s.leavesOf(child.kind, child.edit)
		}
		all := maps.Clone(before)
		maps.Copy(all, theirs)
		maps.Copy(all, now)
		var wrong []string
		for _, name := range slices.Sorted(maps.Keys(all)) {
			want, isOurs := theirs[name], has(ours, name)
			if isOurs && !covers(s.accepted[child.key()], name) {
				want = before[name]
			}
			if name, isAlias := strings.CutSuffix(name, ".serviceAccount"); isAlias {
				want = now[name+".serviceAccountName"]
			}
			// What was added at the creation does not come back, such as a taint of a new node.
			isWanted := reflect.DeepEqual(now[name], want) || isOurs && reflect.DeepEqual(now[name], ours[name])
			if !isWanted {
				wrong = append(wrong, fmt.Sprintf("%s is %v, not %v (the function wants %v, the other client %v)", name, now[name], want, ours[name], theirs[name]))
			}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("after %s:\n\t%s", phase, strings.Join(wrong, "\n\t"))
		}
		return nil
	})
}

// wanted returns the leaves that the function wants, as the API server stores them.
func (s *sweep) wanted(child *specimen) leaves {
	all := s.leavesOf(child.kind, child.ours)
	for name, value := range all {
		key, isText := strings.CutPrefix(name, "stringData.")
		switch {
		case isText:
			delete(all, name)
			all["data."+key] = value
		case strings.HasSuffix(name, ".serviceAccount"):
			delete(all, name)
		}
	}
	return all
}

func has(all leaves, name string) bool {
	_, found := all[name]
	return found
}

// covers reports whether paths have a field, or what is above it.
func covers(paths map[string]bool, name string) bool {
	for path := range paths {
		if rest, found := strings.CutPrefix(name, path); found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// clear removes the children, of which some are in no namespace, and others take addresses. The finalizers would keep
// them, and there is no garbage collector.
func (s *sweep) clear() {
	s.t.Helper()
	s.operator.Stop()
	s.each(func(child *specimen) error {
		remove := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := cluster.Client().Delete(s.t.Context(), child.ours.DeepCopy()); err != nil {
			return client.IgnoreNotFound(err)
		}
		return client.IgnoreNotFound(cluster.Client().Patch(s.t.Context(), child.ours.DeepCopy(), remove))
	})
}
