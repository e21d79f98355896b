package reportonce

import (
	"slices"
	"testing"
)

func TestSetsReportEachTextOnce(t *testing.T) {
	var once Set
	var shared SharedSet
	for name, first := range map[string]func(string) bool{"for an object": once.First, "for the operator": shared.First} {
		if !first("a") || first("a") || !first("b") {
			t.Errorf("%s: a text is reported twice, or never", name)
		}
	}
	if !once.Has("a") || once.Has("c") {
		t.Error("it has what was not reported, or lacks what was")
	}
}

// What is over is forgotten, and said again when it returns.
func TestReplacedTextsAreForgotten(t *testing.T) {
	var s Set
	s.First("another")
	for i, step := range []struct{ texts, fresh []string }{
		{[]string{"a", "b"}, []string{"a", "b"}}, {[]string{"b", "c"}, []string{"c"}}, {nil, nil}, {[]string{"a"}, []string{"a"}}, {[]string{"a"}, nil},
	} {
		if got := s.Replace("it: ", step.texts...); !slices.Equal(got, step.fresh) || len(s) != 1+len(step.texts) {
			t.Errorf("step %d: got %q, %d texts are known", i, got, len(s))
		}
	}
	if s.First("another") {
		t.Error("what has another prefix is forgotten")
	}
}

func TestRepetitionsAreCounted(t *testing.T) {
	var s Set
	for i, step := range []struct {
		name, text string
		want       int
	}{{"fn", "a", 1}, {"fn", "a", 2}, {"other", "a", 1}, {"fn", "b", 1}, {"fn", "a", 1}, {"fn", "a", 2}, {"other", "a", 2}} {
		if got := s.Repeat(step.name, step.text); got != step.want {
			t.Errorf("step %d: got %d", i, got)
		}
	}
	if len(s) != 2 {
		t.Errorf("%d texts are kept", len(s))
	}
}
