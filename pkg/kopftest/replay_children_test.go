package kopftest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// gold selects objects by a label.
var gold = kopf.Labels(map[string]kopf.Matcher{"tier": kopf.Equal("gold")})

func colored(context.Context, *kopf.Change) ([]client.Object, error) {
	return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "secret-theme"}, Data: map[string]string{"color": "secret-blue"}}}, nil
}

func tellOnce(_ context.Context, c *kopf.ChildChange) error {
	if c.Retry() == 0 && !c.Initial() {
		return kopf.Temporary(errors.New("not yet"), time.Second)
	}
	return nil
}

func restore(context.Context, *kopf.Drift) (kopf.Resolution, error) { return kopf.RestoreDrift(), nil }

// families are handlers of children with filters, which can be left out.
type families struct{ ensureAll, decideAll, tellAll, tellNothing bool }

func (f families) declare(r *kopf.Registry) {
	all := kopf.Labels(nil)
	ofEnsure, ofDrift, ofChild := gold, gold, kopf.Annotations(map[string]kopf.Matcher{"quiet": kopf.Absent()})
	if f.ensureAll {
		ofEnsure = all
	}
	if f.decideAll {
		ofDrift = all
	}
	if f.tellAll {
		ofChild = all
	}
	r.Ensure(examples, colored, kopf.ID("children"), ofEnsure)
	r.OnDrift(examples, restore, kopf.ID("drift"), ofDrift)
	if !f.tellNothing {
		r.OnChild(examples, ofConfigMaps, tellOnce, kopf.ID("tell"), ofChild)
	}
}

// recordFamilies runs an operator over the life of a parent and its children, and returns its
// recording.
func recordFamilies(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recording")
	named := kopftest.Settings(func(s *kopf.Settings) { s.Name, s.Recording.File = "test", file })
	inVirtualTime(t, families{}.declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		one.SetLabels(map[string]string{"tier": "gold"})
		h.Create(one)
		h.Advance(time.Minute)
		theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "secret-theme"}}
		h.Patch(theme, `{"data":{"color":"secret-red"}}`)
		h.Advance(time.Minute)
		h.Delete(theme)
		h.Advance(time.Minute)
		h.Create(childOf(one, "other", "1"))
		h.Advance(time.Minute)
		h.Patch(one, `{"metadata":{"annotations":{"quiet":"yes"}}}`)
		h.Advance(time.Minute)
		h.Patch(one, `{"metadata":{"labels":{"tier":null}}}`)
		h.Advance(time.Minute)
		if len(h.Calls("drift")) == 0 || len(h.Calls("tell")) < 4 || len(h.Calls("children")) < 3 || h.Calls("children")[1].Child != "" {
			t.Errorf("got %v", h.Calls())
		}
		h.Stop()
	}, named)
	return file
}

// The calls for children, and their retries, make no difference between an operator and a replay.
func TestReplayOfHandlersOfChildren(t *testing.T) {
	file := recordFamilies(t)
	kopftest.Replay(t, file, registryOf(families{}.declare))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") {
		t.Error("the recording contains values of children")
	}
	for _, wanted := range []string{`"due":["children"]`, `"children":["children/restore","drift","tell"]`, `"children":["children/restore","drift"]`} {
		if !strings.Contains(string(text), wanted) {
			t.Errorf("the recording does not contain %s", wanted)
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}

func TestReplayFindsChangedFiltersOfHandlersOfChildren(t *testing.T) {
	file := recordFamilies(t)
	tests := map[string]struct {
		now  families
		want string
	}{
		"of Ensure":           {families{ensureAll: true}, "children was not following children for the"},
		"of OnDrift":          {families{decideAll: true}, "drift was not following children for the"},
		"of OnChild":          {families{tellAll: true}, "tell was not following children for the"},
		"with a handler less": {families{tellNothing: true}, "tell was following children for the create, and is not now: it is not declared"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			passed, output := runAlone(t, func(t *testing.T) { kopftest.Replay(t, file, registryOf(test.now.declare)) })
			if passed || !strings.Contains(output, test.want) {
				t.Errorf("there is no %q in:\n%s", test.want, output)
			}
		})
	}
}
