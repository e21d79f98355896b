package reconcile

import (
	"encoding/json"
	"fmt"
	"time"
)

// kopfPass handles the object by the rules of Kopf: it knows only the base and the records. When
// all handlers have ended, the current state becomes the base. It drops unknown keys from the
// records that it writes, and leaves the states of the open cycle behind.
func (l *life) kopfPass() {
	l.ledger.Forget()
	before, handled := l.kopfBase()
	spec, was := l.server.object["spec"].(m), before["spec"]
	reason, ids := "create", []string{"field_a.spec.a", "field_b.spec.b", "all", "parent", "labeled"}
	if handled {
		if jsonOf(before) == jsonOf(l.kopfEssence()) {
			return
		}
		reason, ids = "update", []string{"all", "parent", "updated", "resumed", "labeled"}
		if fmt.Sprint(spec["a"]) != fmt.Sprint(was.(m)["a"]) {
			ids = append(ids, "field_a.spec.a")
		}
	}
	merge, done := m{}, true
	l.kopf = true
	l.ledger.Loosen("field_a/spec.a", "field_b/spec.b", "all", "labeled", "updated", "resumed", "parent/x", "parent/y", "parent/field")
	for _, id := range ids {
		r := l.kopfAttempt(l.server.records()[id], reason)
		done = done && r["success"] == true
		merge[kopfPrefix+id] = jsonOf(r)
	}
	if done {
		for id := range l.server.records() {
			merge[kopfPrefix+id] = nil
		}
		for _, id := range ids {
			merge[kopfPrefix+id] = nil
		}
		merge[kopfPrefix+"last-handled-configuration"] = jsonOf(l.kopfEssence()) + "\n"
	}
	l.server.change(m{"metadata": m{"annotations": merge}})
	l.note("Kopf has handled it: %s", l.server.stored())
}

func (l *life) kopfBase() (base m, handled bool) {
	text, handled := l.server.annotations()[kopfPrefix+"last-handled-configuration"].(string)
	_ = json.Unmarshal([]byte(text), &base)
	return base, handled
}

func (l *life) kopfEssence() m {
	essence := l.server.essence()
	return m{"spec": essence["spec"], "metadata": m{"labels": essence["labels"]}}
}

// kopfAttempt calls a handler, and returns its record with the keys that Kopf knows.
func (l *life) kopfAttempt(r m, reason string) m {
	if r == nil || r["purpose"] != reason {
		r = m{"started": time.Now().UTC().Format(time.RFC3339), "purpose": reason}
	}
	if r["success"] != true && r["failure"] != true {
		r["retries"] = 1
		r["success"] = l.rand.IntN(3) > 0
	}
	kept := m{}
	for _, key := range []string{"started", "stopped", "delayed", "purpose", "retries", "success", "failure", "message", "subrefs"} {
		if r[key] != nil {
			kept[key] = r[key]
		}
	}
	return kept
}
