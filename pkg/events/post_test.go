package events_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/hierarchy"
)

// journal is a Poster for tests.
type journal struct {
	scheme *runtime.Scheme
	lines  []string
}

func (j *journal) Post(ref corev1.ObjectReference, eventType, reason, message string) {
	j.lines = append(j.lines, fmt.Sprintf("%s %s/%s: %s %s %q", ref.Kind, ref.Namespace, ref.Name, eventType, reason, message))
}

func (j *journal) Scheme() *runtime.Scheme { return j.scheme }

func handling(j *journal) context.Context {
	ctx := events.WithRecorder(context.Background(), j)
	return hierarchy.WithOwner(ctx, hierarchy.Owner{APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: "example", Namespace: "ns"})
}

func TestHandlersPostEvents(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "other"}}
	node := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n"}}
	tests := map[string]struct {
		post func(ctx context.Context) error
		want []string
	}{
		"any type": {
			func(ctx context.Context) error { return events.Event(ctx, nil, "SomeType", "R", "text") },
			[]string{`KopfExample ns/example: SomeType R "text"`},
		},
		"an information": {
			func(ctx context.Context) error { return events.Info(ctx, nil, "R", "text") },
			[]string{`KopfExample ns/example: Normal R "text"`},
		},
		"a warning about others": {
			func(ctx context.Context) error { return events.Warn(ctx, []any{pod, node}, "R", "text") },
			[]string{`Pod other/p: Warning R "text"`, `Node /n: Warning R "text"`},
		},
		"an error": {
			func(ctx context.Context) error {
				return events.Exception(ctx, nil, "R", "Some exception:", errors.New("exception text"))
			},
			[]string{`KopfExample ns/example: Error R "Some exception: exception text"`},
		},
		"an error without a message": {
			func(ctx context.Context) error { return events.Exception(ctx, nil, "", "", errors.New("text")) },
			[]string{`KopfExample ns/example: Error Error "text"`},
		},
		"an exception without an error": {
			func(ctx context.Context) error { return events.Exception(ctx, nil, "R", "text", nil) },
			[]string{`KopfExample ns/example: Error R "text"`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			j := &journal{scheme: clientgoscheme.Scheme}
			if err := test.post(handling(j)); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(j.lines) != fmt.Sprint(test.want) {
				t.Errorf("got %v, want %v", j.lines, test.want)
			}
		})
	}
}

// choosy is a Poster that posts from a level on.
type choosy struct {
	journal
	level slog.Level
}

func (c *choosy) Enabled(level slog.Level) bool { return level >= c.level }

func TestEventsBelowTheLevelAreNotPosted(t *testing.T) {
	tests := map[string]struct {
		level slog.Level
		want  []string
	}{
		"by default":       {slog.LevelInfo, []string{"Normal", "Warning", "Error", "Any"}},
		"warnings":         {slog.LevelWarn, []string{"Warning", "Error", "Any"}},
		"errors":           {slog.LevelError, []string{"Error", "Any"}},
		"above all levels": {slog.LevelError + 1, []string{"Any"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &choosy{level: test.level}
			ctx := events.WithRecorder(handling(nil), c)
			err := errors.Join(
				events.Info(ctx, nil, "R", ""), events.Warn(ctx, nil, "R", ""),
				events.Exception(ctx, nil, "R", "", nil), events.Event(ctx, nil, "Any", "R", ""),
			)
			if err != nil {
				t.Error(err)
			}
			var want []string
			for _, eventType := range test.want {
				want = append(want, fmt.Sprintf("KopfExample ns/example: %s R %q", eventType, ""))
			}
			if !slices.Equal(c.lines, want) {
				t.Errorf("got %q", c.lines)
			}
		})
	}
}

func TestInvalidEventsAreReported(t *testing.T) {
	tests := map[string]struct {
		ctx  func(j *journal) context.Context
		objs any
		want string
	}{
		"outside a handler": {
			func(*journal) context.Context { return context.Background() }, nil,
			"the context does not belong to a handler",
		},
		"no object": {
			func(j *journal) context.Context { return events.WithRecorder(context.Background(), j) }, nil,
			"no object is given, and the context has no handled object",
		},
		"an object of an unknown kind among others": {
			handling,
			[]any{hierarchy.Owner{APIVersion: "v1", Kind: "Pod", Name: "p"}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "q"}}},
			"has no apiVersion and kind",
		},
		"an object without a name": {
			handling,
			map[string]any{"apiVersion": "v1", "kind": "Pod"},
			"has no name",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			j := &journal{}
			err := events.Info(test.ctx(j), test.objs, "R", "text")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if len(j.lines) > 0 {
				t.Errorf("posted %v", j.lines)
			}
		})
	}
}
