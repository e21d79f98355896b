package reportonce

import "testing"

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
