package reportonce

import "testing"

func TestTopics(t *testing.T) {
	var topics Topics
	topics.Clear("watch")
	for i, step := range []struct {
		topic, text string
		want        bool
	}{
		{"watch", "", true},
		{"watch", "", false},
		{"watch", "forbidden", true},
		{"watch", "forbidden", false},
		{"write", "forbidden", true},
		{"watch", "forbidden", false},
	} {
		if got := topics.Changed(step.topic, step.text); got != step.want {
			t.Errorf("step %d: got %t", i, got)
		}
	}
	topics.Clear("watch")
	if !topics.Changed("watch", "forbidden") {
		t.Error("the topic was not cleared")
	}
	if topics.Changed("write", "forbidden") {
		t.Error("another topic was cleared")
	}
}
