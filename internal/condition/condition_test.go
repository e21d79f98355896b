package condition_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/internal/condition"
)

type m = map[string]any

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const early, late = "2026-11-23T11:00:00Z", "2026-11-23T12:00:00Z"

func TestSet(t *testing.T) {
	ready := metav1.Condition{Type: "Ready", Status: "True", Reason: "Done", Message: "all", ObservedGeneration: 2}
	want := func(since string) m {
		return m{"type": "Ready", "status": "True", "reason": "Done", "message": "all", "observedGeneration": int64(2), "lastTransitionTime": since}
	}
	other := m{"type": "Other", "status": "False"}
	extended := want(early)
	extended["owner"] = "x"
	tests := map[string]struct{ before, after m }{
		"an object without a status":   {m{}, m{"status": m{"conditions": []any{want(late)}}}},
		"another condition stays":      {m{"status": m{"conditions": []any{other}}}, m{"status": m{"conditions": []any{other, want(late)}}}},
		"the status changes":           {m{"status": m{"conditions": []any{m{"type": "Ready", "status": "False", "lastTransitionTime": early}, other}}}, m{"status": m{"conditions": []any{want(late), other}}}},
		"the status stays":             {m{"status": m{"conditions": []any{m{"type": "Ready", "status": "True", "lastTransitionTime": early, "owner": "x"}}}}, m{"status": m{"conditions": []any{extended}}}},
		"one without a type is kept":   {m{"status": m{"conditions": []any{m{}}}}, m{"status": m{"conditions": []any{m{}, want(late)}}}},
		"what is no condition is kept": {m{"status": m{"conditions": []any{"?"}, "size": 1}}, m{"status": m{"conditions": []any{"?", want(late)}, "size": 1}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := condition.Set(test.before, ready, noon); err != nil || !reflect.DeepEqual(test.before, test.after) {
				t.Errorf("got %v, %v, want %v", test.before, err, test.after)
			}
		})
	}
}

func TestSetRefusesAnotherShape(t *testing.T) {
	for _, body := range []m{{"status": "x"}, {"status": m{"conditions": m{}}}} {
		if err := condition.Set(body, metav1.Condition{Type: "Ready"}, noon); err == nil {
			t.Errorf("got %v", body)
		}
	}
}

func TestListsAreNotModified(t *testing.T) {
	list := make(condition.List, 0, 8)
	list = append(list, m{"type": "A", "status": "True"}, m{"type": "B", "status": "False"})
	without := list.Without("A")
	_ = list.With(metav1.Condition{Type: "A", Status: "False"}, noon)
	_ = list.With(metav1.Condition{Type: "C", Status: "True"}, noon)
	if !list.Is("A") || list.Is("B") || list.Is("C") || len(list) != 2 || len(without) != 1 || without.Get("B") == nil || list[:3][2] != nil {
		t.Errorf("got %v, %v", list, without)
	}
	if got := list.Without("C"); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestAGivenTimeIsKept(t *testing.T) {
	given := metav1.Condition{Type: "A", Status: "True", LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}
	if got := condition.List(nil).With(given, noon).Get("A")["lastTransitionTime"]; got != early {
		t.Errorf("got %v", got)
	}
}

func TestValidate(t *testing.T) {
	for want, c := range map[string]metav1.Condition{
		"no type":             {Status: "True", Reason: "R"},
		`has the status "ok"`: {Type: "A", Status: "ok", Reason: "R"},
		"has no reason":       {Type: "A", Status: "True"},
	} {
		if err := condition.Validate(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := condition.Validate(metav1.Condition{Type: "A", Status: "Unknown", Reason: "R"}); err != nil {
		t.Error(err)
	}
}
