package faults

import (
	"bytes"
	"net/http"
	"strings"
)

// stormFault is a fault of one write in a storm, which is in place of the write.
type stormFault struct {
	name string
	// weight is how often the fault happens, compared with others: 1 if it is 0.
	weight int
	// rare faults suit few writes, of which they affect every second one.
	rare bool
	// suits reports whether the fault fits the write. Nil means that it always does.
	suits func(w *stormWrite) bool
	at    func(w *stormWrite) (*http.Response, error)
}

var noFault = stormFault{at: (*stormWrite).commit}

var stormFaults = []stormFault{
	{name: "the operator dies before it", suits: (*stormWrite).isMortal, at: func(w *stormWrite) (*http.Response, error) {
		w.die()
		return nil, errDead
	}},
	{name: "the operator dies after it", suits: (*stormWrite).isMortal, at: func(w *stormWrite) (*http.Response, error) {
		_, _ = w.commit()
		w.die()
		return nil, errDead
	}},
	{name: "the operator dies after it, and the API server lags behind", weight: 3, suits: (*stormWrite).hasLists, at: func(w *stormWrite) (*http.Response, error) {
		w.keepList()
		_, _ = w.commit()
		w.die()
		return nil, errDead
	}},
	{name: "the leader dies after it, which the other replica does not see", weight: 4, suits: (*stormWrite).hasStandby, at: func(w *stormWrite) (*http.Response, error) {
		w.blindStandby()
		_, _ = w.commit()
		w.die()
		return nil, errDead
	}},
	{name: "a watch ends with 410", suits: func(w *stormWrite) bool { return w.mayBreakWatches() }, at: func(w *stormWrite) (*http.Response, error) {
		w.breaks.Add(1)
		w.watches.end()
		return w.commit()
	}},
	{name: "the answer is lost", at: func(w *stormWrite) (*http.Response, error) {
		_, _ = w.commit()
		return nil, errLost
	}},
	{name: "500 after the commit", at: func(w *stormWrite) (*http.Response, error) {
		_, _ = w.commit()
		return failure(w.request, http.StatusInternalServerError, "InternalError"), nil
	}},
	{name: "a timeout after the commit, to be repeated", weight: 2, at: func(w *stormWrite) (*http.Response, error) {
		_, _ = w.commit()
		answer := failure(w.request, http.StatusGatewayTimeout, "Timeout")
		answer.Header.Set("Retry-After", "0")
		return answer, nil
	}},
	{name: "503 without the commit", at: func(w *stormWrite) (*http.Response, error) {
		return failure(w.request, http.StatusServiceUnavailable, "ServiceUnavailable"), nil
	}},
	{name: "404 of a proxy", at: func(w *stormWrite) (*http.Response, error) {
		return page(w.request, http.StatusNotFound), nil
	}},
	{name: "403 of a proxy", at: func(w *stormWrite) (*http.Response, error) {
		return page(w.request, http.StatusForbidden), nil
	}},
	{name: "404 of a lagging API server", at: func(w *stormWrite) (*http.Response, error) {
		return missing(w.request, w.subject.name), nil
	}},
	{name: "the answer is cut off", at: func(w *stormWrite) (*http.Response, error) {
		w.cut = true
		return cutOff(w.commit())
	}},
	{name: "it is on its way still", weight: 2, at: func(w *stormWrite) (*http.Response, error) {
		w.postpone()
		return nil, errLost
	}},
	{name: "the watches stall", at: func(w *stormWrite) (*http.Response, error) {
		w.stall(w.dice, (*gate).shut)
		return w.commit()
	}},
	{name: "the watches stall at the release", rare: true, suits: (*stormWrite).releases, at: func(w *stormWrite) (*http.Response, error) {
		w.stall(w.dice, (*gate).shut)
		return w.commit()
	}},
	{name: "the watches stall until the object is read", rare: true, suits: (*stormWrite).retries, at: func(w *stormWrite) (*http.Response, error) {
		w.stallUntilRead()
		return w.commit()
	}},
	{name: "the watches break", suits: func(w *stormWrite) bool { return w.mayBreakWatches() }, at: func(w *stormWrite) (*http.Response, error) {
		w.breaks.Add(1)
		w.stall(w.dice, (*gate).cut)
		return w.commit()
	}},
	{name: "another client is faster", weight: 2, at: func(w *stormWrite) (*http.Response, error) {
		w.subject.edit(w.dice)
		return w.commit()
	}},
	{name: "another client is next", at: func(w *stormWrite) (*http.Response, error) {
		defer w.subject.edit(w.dice)
		return w.commit()
	}},
	{name: "another client flips the labels at the release", weight: 3, rare: true, suits: (*stormWrite).releases, at: func(w *stormWrite) (*http.Response, error) {
		w.subject.flip()
		return w.commit()
	}},
	{name: "another client is faster than records in the status", weight: 2, rare: true, suits: (*stormWrite).isAside, at: func(w *stormWrite) (*http.Response, error) {
		w.subject.edit(w.dice)
		return w.commit()
	}},
	{name: "another client damages a record", weight: 3, suits: (*stormWrite).hasDamage, at: func(w *stormWrite) (*http.Response, error) {
		w.subject.damage(w.dice)
		return w.commit()
	}},
	{name: "another client replaces the object", at: func(w *stormWrite) (*http.Response, error) {
		w.subject.replaceOnce()
		return w.commit()
	}},
	{name: "a policy denies it, and everything else for a while", weight: 3, at: func(w *stormWrite) (*http.Response, error) {
		w.subject.deny(1 + w.dice.IntN(3))
		return w.commit()
	}},
	{name: "a policy rejects the journal for a while", at: func(w *stormWrite) (*http.Response, error) {
		w.subject.ban(1 + w.dice.IntN(3))
		return w.commit()
	}},
	{name: "another client deletes the object by force, and the watches are late", at: func(w *stormWrite) (*http.Response, error) {
		w.subject.vanish(w)
		return w.commit()
	}},
	{name: "404, and lists do not have the object", suits: (*stormWrite).isWet, at: func(w *stormWrite) (*http.Response, error) {
		w.subject.hide(w.stormOperator)
		return missing(w.request, w.subject.name), nil
	}},
	{name: "another operator releases the object first", rare: true, suits: (*stormWrite).mayBeReleased, at: func(w *stormWrite) (*http.Response, error) {
		w.awaitRival()
		return w.commit()
	}},
	{name: "another operator is faster with an edit", rare: true, suits: (*stormWrite).mayHaveRivalEdit, at: func(w *stormWrite) (*http.Response, error) {
		w.awaitRival()
		return w.commit()
	}},
	{name: "another operator is faster", weight: 6, suits: (*stormWrite).mayHaveRival, at: func(w *stormWrite) (*http.Response, error) {
		w.awaitRival()
		return w.commit()
	}},
}

// pick returns a fault of the write, or none: one of three writes fails, less in patient storms, and
// more if the write is of a rare kind.
func (w *stormWrite) pick() stormFault {
	var all, rare []stormFault
	for _, fault := range stormFaults {
		if fault.suits != nil && !fault.suits(w) {
			continue
		}
		for range max(fault.weight, 1) {
			if fault.rare {
				rare = append(rare, fault)
			} else {
				all = append(all, fault)
			}
		}
	}
	if len(rare) > 0 && w.dice.IntN(2) == 0 {
		return oneOf(w.dice, rare...)
	}
	share := 1 + faultless
	if w.storm.patient {
		share = 1 + faultlessIfPatient
	}
	if n := w.dice.IntN(len(all) * share); n < len(all) {
		return all[n]
	}
	return noFault
}

// isWet reports whether the write is not a dry run.
func (w *stormWrite) isWet() bool { return !w.dry() }

// isMortal reports whether the operator may die.
func (w *stormWrite) isMortal() bool { return !w.storm.steady }

// isAside reports whether a write has only records in the status.
func (w *stormWrite) isAside() bool {
	return w.storm.statusRecords && !w.dry() && !w.isMain() && bytes.Contains(w.body(), []byte(`"kopf":`))
}

// isMain reports whether the write is not to the status.
func (w *stormWrite) isMain() bool { return !strings.HasSuffix(w.request.URL.Path, "/status") }

func (w *stormWrite) hasLists() bool { return w.storm.lists && w.isMortal() }

// releases reports whether the write removes our finalizer from an object that is deleted.
func (w *stormWrite) releases() bool {
	s := w.subject
	return s.deleting && s.committed.isHeld() &&
		bytes.Contains(w.body(), []byte(`"finalizers":[`)) && !bytes.Contains(w.body(), []byte(ourFinalizer))
}

// retries reports whether the write records that a handler will be retried, which no pause puts
// off.
func (w *stormWrite) retries() bool {
	return !w.storm.pauses && !w.dry() && w.isMain() && bytes.Contains(w.body(), []byte(`\"delayed\":`))
}
