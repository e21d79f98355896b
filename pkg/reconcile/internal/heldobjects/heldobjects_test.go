package heldobjects

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func keyOf(name string) object.Key {
	return object.Key{Resource: "kex", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

type problems = map[string]string

var passes, index = Finding{Reason: metrics.Misfit}, Finding{Reason: metrics.Misfit, By: "index"}

func TestSetTellsNewProblemsFromKnownOnes(t *testing.T) {
	var s Set
	for i, step := range []struct {
		key   object.Key
		of    Finding
		given problems
		fresh []string
	}{
		{keyOf("a"), passes, nil, nil},
		{keyOf("a"), passes, problems{"y": "1", "x": "1"}, []string{"x", "y"}},
		{keyOf("a"), passes, problems{"y": "1", "x": "1"}, nil},
		{keyOf("a"), index, problems{"x": "1"}, []string{"x"}},
		{keyOf("b"), passes, problems{"x": "1"}, []string{"x"}},
		{keyOf("a"), passes, problems{"y": "2", "x": "1"}, []string{"y"}},
		{keyOf("a"), passes, nil, nil},
		{keyOf("a"), passes, problems{"x": "1"}, []string{"x"}},
		{keyOf("a"), index, problems{"x": "1"}, nil},
	} {
		if fresh := s.Replace(step.key, step.of, step.given); !reflect.DeepEqual(fresh, step.fresh) {
			t.Errorf("step %d: got %q, want %q", i, fresh, step.fresh)
		}
	}
}

func TestSetCountsObjectsOnce(t *testing.T) {
	var s Set
	suspended := Finding{Reason: metrics.Suspended}
	s.Replace(keyOf("a"), passes, problems{"x": "", "y": ""})
	s.Replace(keyOf("a"), index, problems{"z": ""})
	s.Replace(keyOf("a"), suspended, problems{"": ""})
	s.Replace(keyOf("b"), passes, problems{"x": ""})
	want := []metrics.Held{{Resource: "kex", Reason: metrics.Misfit, Objects: 2}, {Resource: "kex", Reason: metrics.Suspended, Objects: 1}}
	if got := s.Counts(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.Replace(keyOf("b"), passes, nil)
	s.Forget(keyOf("a"))
	if got := s.Counts(); len(got) > 0 || len(s.objects) > 0 {
		t.Errorf("got %v, %v", got, s.objects)
	}
}

func TestSummaryHasALineForEachGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []Line
		s := Summary{Report: func(line Line) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}}
		logged := func() []Line {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(lines)
		}
		size, name := Group{"kex", "*v1.Kex", "spec.size"}, Group{"kex", "*v1.Kex", "spec.name"}
		for _, object := range []string{"e", "d", "c", "b", "a", "a"} {
			s.Add(size, keyOf(object), "create")
			time.Sleep(quietPeriod / 2)
		}
		s.Add(name, keyOf("a"), "update")
		s.Add(name, keyOf("a"), "create")
		if early := logged(); len(early) > 0 {
			t.Errorf("too early: %v", early)
		}
		time.Sleep(quietPeriod)
		synctest.Wait()
		want := []Line{
			{name, 1, []string{"create", "update"}, []string{"ns/a"}},
			{size, 5, []string{"create"}, []string{"ns/a", "ns/b", "ns/c"}},
		}
		if got := logged(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v", got)
		}
		s.Add(size, keyOf("f"), "create")
		s.Stop()
		time.Sleep(quietPeriod)
		synctest.Wait()
		if got := logged(); len(got) != len(want) {
			t.Errorf("after the end: %v", got)
		}
	})
}
