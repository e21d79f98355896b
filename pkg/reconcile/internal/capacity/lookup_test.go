package capacity

import "testing"

func TestLookup(t *testing.T) {
	c := newCalls(t, 2)
	c.take(limited("a-1", 1), unlimited("b-1"))
	c.refuse(limited("a-3", 1), unlimited("c-1"))
	tests := map[string]struct {
		name, id string
		running  bool
		limit    string
	}{
		"a running call":              {"a-1", "fn", true, ""},
		"another handler":             {"a-1", "other", false, ""},
		"the limit of a handler":      {"a-3", "fn", false, "kopf.Limit(1)"},
		"the limit of the operator":   {"c-1", "fn", false, "Settings.Execution.MaxCalls (2)"},
		"a handler that asked for no": {"c-2", "fn", false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if running, limit := c.Lookup(keyOf(test.name), test.id); running != test.running || limit != test.limit {
				t.Errorf("got %t, %q", running, limit)
			}
		})
	}
	c.end("a-1") // a slot is reserved for one of them, which waits no longer
	if _, limit := c.Lookup(keyOf("a-3"), "fn"); limit != "" {
		t.Errorf("got %q", limit)
	}
}
