package events

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// withPrefix returns the name of an event that the correlator has named. The same name always
// gets the same result: the correlator counts events by it.
func (r *Recorder) withPrefix(name string) string {
	if strings.HasPrefix(name, r.options.NamePrefix) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return r.options.NamePrefix + hex.EncodeToString(sum[:8])
}

// Reference returns the reference to an object for events about it.
func Reference(body *object.Body) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: body.APIVersion(), Kind: body.Kind(),
		Namespace: body.Namespace(), Name: body.Name(), UID: body.UID(),
	}
}

// spamKey returns the key of an event's rate limit. Lines of the log have a separate limit.
func spamKey(event *corev1.Event) string {
	ref := event.InvolvedObject
	logged := event.Reason == ReasonLogging
	return strings.Join([]string{
		ref.APIVersion, ref.Kind, ref.Namespace, ref.Name, string(ref.UID), event.Type, strconv.FormatBool(logged),
	}, "\n")
}

// combinationKey returns the key of events that are combined if they are many. The outcomes of different handlers stay
// apart: the failure of one of ten steps must not disappear in the successes of the others.
func combinationKey(event *corev1.Event) (key, message string) {
	key, message = record.EventAggregatorByReasonFunc(event)
	return key + "\n" + HandlerIn(event.Message), message
}

func isEvent(ref corev1.ObjectReference) bool {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return kind.Kind == "Event" && (kind.Group == corev1.GroupName || kind.Group == eventsv1.GroupName)
}

// strictClock never returns the same time twice. The names of events contain the time,
// and two handlers of an object often end within one tick of a coarse clock.
type strictClock struct {
	mu   sync.Mutex
	last time.Time
}

func (c *strictClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !now.After(c.last) {
		now = c.last.Add(time.Nanosecond)
	}
	c.last = now
	return now
}

func (c *strictClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
