package usercode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

var (
	examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")
	claims   = kopf.Resource("kopf.dev", "v1", "ephemeralvolumeclaims")
)

// The objects for which code misbehaves, by the path that calls it.
const (
	resumed = "resumed" // after a start
	created = "created"
	retried = "retried" // when a handler is retried
	updated = "updated"
	deleted = "deleted"
	paused  = "paused"  // after a pause
	stopped = "stopped" // when the operator stops while a handler is running
)

var allPaths = []string{resumed, created, retried, updated, deleted, paused, stopped}

// innocents are handlers that do nothing wrong.
type innocents struct {
	mu    sync.Mutex
	calls map[string]int // of each handler, for each object
	// tried is called when the first attempt of the handler that is retried has failed.
	tried func(name string)
}

func (i *innocents) note(id, name string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.calls == nil {
		i.calls = map[string]int{}
	}
	i.calls[id+" "+name]++
	return i.calls[id+" "+name]
}

func (i *innocents) count(id, name string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls[id+" "+name]
}

// result stores the size of the object.
func (i *innocents) result(id string) func(context.Context, *kopf.Change) error {
	return func(_ context.Context, c *kopf.Change) error {
		i.note(id, c.Name())
		size, _ := c.Spec().Int64("size")
		c.SetResult(size)
		return nil
	}
}

// declareEarlier declares the handlers that come before the code that misbehaves.
func (i *innocents) declareEarlier(r *kopf.Registry) {
	for _, sel := range []kopf.Selector{examples, claims} {
		r.OnCreate(sel, i.result("created"), kopf.ID("created"))
		r.OnUpdate(sel, i.result("updated"), kopf.ID("updated"))
		r.OnDelete(sel, i.result("deleted"), kopf.ID("deleted"))
	}
	r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		if c.Name() == retried && i.note("hesitant", c.Name()) == 1 {
			i.tried(c.Name())
			return kopf.Temporary(errors.New("not yet"), 30*time.Second)
		}
		return nil
	}, kopf.ID("hesitant"))
	r.OnUpdate(examples, func(_ context.Context, c *kopf.Change) error {
		if c.Name() == stopped {
			time.Sleep(5 * time.Second)
		}
		return nil
	}, kopf.ID("slow"))
}

// declareLater declares those that come after it.
func (i *innocents) declareLater(r *kopf.Registry) {
	for _, sel := range []kopf.Selector{examples, claims} {
		r.OnCreate(sel, i.result("later"), kopf.ID("later"))
		r.OnUpdate(sel, i.result("changed"), kopf.ID("changed"))
	}
}

// story is what happens while code misbehaves.
type story struct {
	*bench
	site      site
	culprit   *culprit
	innocents innocents
}

// tell tells the story of a piece of code: on every path, it misbehaves for one object, while others are
// created, updated, and deleted.
func tell(t *testing.T, s site, how misbehavior) {
	t.Helper()
	y := &story{site: s, culprit: newCulprit(how)}
	y.culprit.folder = t.TempDir()
	y.innocents.tried = y.culprit.misbehaveFor
	y.bench = newBench(t, func() *kopf.Registry {
		r := kopf.NewRegistry()
		y.innocents.declareEarlier(r)
		if s.declare != nil {
			s.declare(r, y.culprit)
		}
		y.innocents.declareLater(r)
		return r
	}, func(settings *kopf.Settings) {
		settings.Persistence.DiffBase, settings.Persistence.Progress = storage.AnnotationsDiffBase{}, storage.AnnotationsProgress{}
		if s.settings != nil {
			s.settings(settings, y.culprit)
		}
	})
	y.id, y.scheme = y.culprit.id, scheme(s.decodes)
	if s.tracer != nil {
		y.tracer = s.tracer(y.culprit)
	}
	defer y.end()
	y.behave()
	y.misbehave()
	y.expectInnocentsOfTheSameObject()
	if how == panics || how == exits {
		y.culprit.reform()
		y.advance(5 * time.Minute)
		y.expectAllHandled(map[string]int{resumed: 1, created: 1, retried: 1, updated: 2, paused: 2})
	}
	y.stopWhileMisbehaving()
	y.culprit.release()
	y.start()
	y.advance(5 * time.Minute)
	y.expectAllHandled(map[string]int{resumed: 1, created: 1, retried: 1, updated: 2, paused: 2, stopped: 3})
	y.stopInOrder()
	y.expectCalls()
	y.expectStrikes()
	y.expectReports()
	y.expectNoGoroutines()
}

// behave is the part of the story before the code misbehaves.
func (y *story) behave() {
	y.Helper()
	y.must(y.client.Create(y.Context(), peering()))
	y.start()
	y.create(example, resumed, updated, deleted, paused, stopped)
	y.advance(10 * time.Second)
	for _, name := range []string{resumed, updated, deleted, paused, stopped} {
		y.expectHandled(example, name, 1)
	}
	y.stopInOrder()
}

// misbehave is the part in which the code misbehaves, on one path after the other.
func (y *story) misbehave() {
	y.Helper()
	for _, path := range []struct {
		name  string
		begin func()
	}{
		{resumed, y.start},
		{created, func() { y.create(example, created, retried) }},
		{updated, func() { y.resize(example, updated, 2) }},
		{deleted, func() { y.delete(example, deleted) }},
		{paused, func() {
			y.pause(true)
			y.resize(example, paused, 2)
			y.pause(false)
		}},
	} {
		y.culprit.misbehaveFor(path.name)
		path.begin()
		y.advance(time.Minute)
		if y.site.provoke != nil {
			y.site.provoke(y, path.name)
		}
		if y.culprit.how == panics || y.culprit.how == blocks { // the others end in the same way
			y.live(path.name, example)
		}
	}
	y.live("all", example, claim)
}

// stopWhileMisbehaving stops the operator while a handler is running, and another client changes its object.
func (y *story) stopWhileMisbehaving() {
	y.Helper()
	y.resize(example, stopped, 2)
	y.advance(time.Second)
	y.culprit.misbehaveFor(stopped)
	y.resize(example, stopped, 3)
	synctest.Wait() // the watch has shown that
	took, err := y.stop()
	limit := 5*time.Second + time.Second
	if y.culprit.how == waits || y.culprit.how == blocks {
		limit = settings.DefaultGracePeriod + 5*time.Second
	}
	if y.site.recorded {
		limit += 5 * time.Second
	}
	if took > limit || err != nil && !strings.Contains(err.Error(), "some handlers have not returned after the grace period") {
		y.Errorf("the operator stopped after %s: %v", took, err)
	}
}

// stopInOrder stops the operator while nothing misbehaves.
func (y *story) stopInOrder() {
	y.Helper()
	if took, err := y.stop(); err != nil || took > 5*time.Second {
		y.Errorf("without misbehavior, the operator stopped after %s: %v", took, err)
	}
}

// end releases and stops what is left if the story could not be told to its end.
func (y *story) end() {
	y.culprit.release()
	if y.cancel != nil {
		y.cancel()
		time.Sleep(time.Hour)
	}
}

// expectAllHandled expects that all objects for which the code has misbehaved are handled, and that the
// deleted one is released.
func (y *story) expectAllHandled(sizes map[string]int) {
	y.Helper()
	for name, size := range sizes {
		y.expectHandled(example, name, size)
	}
	if y.get(example, deleted) != nil {
		y.Errorf("%s is not released", deleted)
	}
}

// expectInnocentsOfTheSameObject expects that other handlers of an object are not held back by one that
// misbehaves for it, if that is guaranteed.
func (y *story) expectInnocentsOfTheSameObject() {
	y.Helper()
	if blocked := y.culprit.how == waits || y.culprit.how == blocks; blocked && y.site.isolation != always || y.site.isolation == never {
		return
	}
	y.expectResults(example, created, map[string]int64{"created": 1, "later": 1})
	y.expectResults(example, updated, map[string]int64{"updated": 2, "changed": 2})
}

// expectCalls expects that no handler was called again after its success, unless the operator had to leave its
// outcome.
func (y *story) expectCalls() {
	y.Helper()
	most := 1
	if y.culprit.how == waits || y.culprit.how == blocks {
		most = 2
	}
	expect := func(name string, ids ...string) {
		for _, id := range ids {
			if calls := y.innocents.count(id, name); calls < 1 || calls > most {
				y.Errorf("%s: the handler %s was called %d times", name, id, calls)
			}
		}
	}
	for _, name := range []string{resumed, created, retried, updated, paused, stopped} {
		expect(name, "created", "later")
	}
	for _, name := range []string{updated, paused} {
		expect(name, "updated", "changed")
	}
}

// expectStrikes expects that the code has misbehaved on all paths that call it.
func (y *story) expectStrikes() {
	y.Helper()
	for _, path := range allPaths {
		if struck := y.culprit.count(path); struck == 0 && slices.Contains(y.site.paths, path) {
			y.Errorf("the code was not called for %s", path)
		}
	}
}

// expectReports expects that the log says what has happened, once for each time.
func (y *story) expectReports() {
	y.Helper()
	if y.site.tracer != nil && (y.culprit.how == panics || y.culprit.how == exits) {
		y.expectLines("all objects", 1, "The tracer has failed.", `"error"=`)
		return
	}
	for _, path := range allPaths {
		struck := y.culprit.count(path)
		if struck == 0 || path == stopped && y.site.recorded { // only the recorder has called the code then
			continue
		}
		object := fmt.Sprintf(`"name"=%q`, path)
		switch y.culprit.how {
		case panics:
			y.expectLines(path, struck, object, `"error"=`, "misbehavior for "+path)
		case exits:
			y.expectLines(path, struck, object, `"error"=`, "runtime.Goexit")
		case waits: // until the operator asks it to return
		case blocks:
			if lines := len(y.log.about(object, "return")); lines == 0 {
				y.Errorf("the log does not say that code has not returned for %s", path)
			}
		}
	}
}

func (y *story) expectLines(path string, most int, texts ...string) {
	y.Helper()
	if lines := len(y.log.about(texts...)); lines == 0 || lines > most {
		y.Errorf("for %s, the code has misbehaved %d times, and %d lines in the log say so", path, most, lines)
	}
}

// live expects that other objects are created, updated, and deleted as usual.
func (y *story) live(during string, kinds ...string) {
	y.Helper()
	names := map[string]string{}
	for _, kind := range kinds {
		names[kind] = strings.ToLower(kind) + "-" + during
		y.create(kind, names[kind])
	}
	y.advance(10 * time.Second)
	for kind, name := range names {
		y.expectHandled(kind, name, 1)
		y.resize(kind, name, 2)
	}
	y.advance(10 * time.Second)
	for kind, name := range names {
		y.expectHandled(kind, name, 2)
		y.delete(kind, name)
	}
	y.advance(10 * time.Second)
	for kind, name := range names {
		if y.get(kind, name) != nil {
			y.Errorf("%s %s: the object is not released", kind, name)
		}
		for _, id := range []string{"created", "later", "updated", "changed", "deleted"} {
			if calls := y.innocents.count(id, name); calls != 1 {
				y.Errorf("%s %s: the handler %s was called %d times", kind, name, id, calls)
			}
		}
	}
}

// expectHandled expects that the outcomes of the handlers of an object are stored.
func (y *story) expectHandled(kind, name string, size int) {
	y.Helper()
	found := y.get(kind, name)
	if found == nil {
		y.Errorf("%s %s does not exist", kind, name)
		return
	}
	var open []string
	for key := range found.GetAnnotations() {
		if strings.HasPrefix(key, "kopf.zalando.org/") && key != baseAnnotation && key != "kopf.zalando.org/kopf-children" {
			open = append(open, key)
		}
	}
	if base := found.GetAnnotations()[baseAnnotation]; !strings.Contains(base, fmt.Sprintf(`"size":%d`, size)) || len(open) > 0 {
		y.Errorf("%s %s: the handled state is %q, and these records are open: %v", kind, name, base, open)
	}
	want := map[string]int64{"created": 1, "later": 1}
	if size > 1 {
		want["updated"], want["changed"] = int64(size), int64(size)
	}
	y.expectResults(kind, name, want)
}

// expectResults expects that results are stored.
func (y *story) expectResults(kind, name string, want map[string]int64) {
	y.Helper()
	found := y.get(kind, name)
	for id, value := range want {
		if got, _, _ := unstructured.NestedInt64(found.Object, "status", id); got != value {
			y.Errorf("%s %s: the result of the handler %s is %d, want %d", kind, name, id, got, value)
		}
	}
}

const baseAnnotation = "kopf.zalando.org/last-handled-configuration"

// pause pauses the operator as another one with a higher priority does, or ends that.
func (y *story) pause(on bool) {
	y.Helper()
	entry := "null"
	if on {
		entry = fmt.Sprintf(`{"priority": 100, "lifetime": 3600, "lastseen": %q}`, time.Now().UTC().Format(time.RFC3339))
	}
	y.must(y.client.Patch(y.Context(), peering(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status": {"another": %s}}`, entry))))
	y.advance(time.Minute)
}

// peering is the object of all operators.
func peering() *unstructured.Unstructured {
	p := &unstructured.Unstructured{}
	p.SetAPIVersion("kopf.dev/v1")
	p.SetKind("ClusterKopfPeering")
	p.SetName("default")
	return p
}
