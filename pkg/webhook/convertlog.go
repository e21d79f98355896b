package webhook

import (
	"cmp"
	"hash/maphash"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/handler"
)

const (
	// failureInterval is how long the same failure of a conversion is not logged again.
	failureInterval = 10 * time.Minute
	// maxFailures is how many different failures are logged in that time. It limits the memory, and the log if
	// the text of an error is another one each time.
	maxFailures = 1000
)

// failureLog logs the failures of conversions. The API server repeats a conversion without a request of a user, many times
// a second: it fills its cache with all objects of a resource, and begins anew after each failure. The zero value is
// ready to use.
type failureLog struct {
	mu   sync.Mutex
	seed maphash.Seed
	said map[uint64]time.Time // by the hash of the object and the error
	// fullUntil is when the first failure can be forgotten, while there are too many.
	fullUntil time.Time
	saidFull  time.Time
}

// record logs a failure unless the log has it already. The text of the error names the step between two versions.
func (l *failureLog) record(log logr.Logger, resource string, object *unstructured.Unstructured, err error) {
	isNew, isLast := l.admit(resource, object, err.Error(), time.Now())
	if !isNew {
		log.V(1).Info("The conversion failed again, or there are too many failures.", "reason", err.Error())
		return
	}
	log.Error(err, "The conversion failed. The API server also repeats it for its cache, so the same failure is not logged again for a while.", handler.StackValues(err)...)
	if isLast {
		log.Info("Many conversions fail. Other failures are not logged for a while; the metric kopf_conversions_total counts them.")
	}
}

// admit reports whether a failure must be logged, and whether the log must say that it is the last one for a while.
func (l *failureLog) admit(resource string, object *unstructured.Unstructured, text string, now time.Time) (isNew, isLast bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said == nil {
		l.said = map[uint64]time.Time{}
		l.seed = maphash.MakeSeed()
	}
	name := cmp.Or(object.GetName(), object.GetGenerateName())
	key := maphash.Comparable(l.seed, [5]string{resource, object.GetNamespace(), name, string(object.GetUID()), text})
	if at, known := l.said[key]; known && now.Sub(at) < failureInterval {
		return false, false
	}
	if len(l.said) >= maxFailures && !l.forget(now) {
		return false, false
	}
	l.said[key] = now
	isLast = len(l.said) == maxFailures && now.Sub(l.saidFull) >= failureInterval
	if isLast {
		l.saidFull = now
	}
	return true, isLast
}

// forget forgets old failures, and reports whether there is room for another one.
func (l *failureLog) forget(now time.Time) bool {
	if now.Before(l.fullUntil) {
		return false
	}
	l.fullUntil = now.Add(failureInterval)
	for key, at := range l.said {
		end := at.Add(failureInterval)
		switch {
		case !end.After(now):
			delete(l.said, key)
		case end.Before(l.fullUntil):
			l.fullUntil = end
		}
	}
	return len(l.said) < maxFailures
}
