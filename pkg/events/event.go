package events

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record/util"

	"github.com/kopf-go/kopf/pkg/model/object"
)

func (r *Recorder) newEvent(ref corev1.ObjectReference, eventType, reason, message string) *corev1.Event {
	now := r.clock.Now()
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      r.newName(ref, now),
			Namespace: namespaceOf(ref),
		},
		InvolvedObject:      ref,
		Type:                singleWord(eventType, TypeNormal),
		Reason:              singleWord(reason, unspecified),
		Message:             singleLine(message),
		Count:               1,
		FirstTimestamp:      metav1.NewTime(now),
		LastTimestamp:       metav1.NewTime(now),
		Source:              corev1.EventSource{Component: r.options.Component},
		ReportingController: r.options.Component,
		ReportingInstance:   r.options.Instance,
	}
}

// newName returns the name of a new event. A prefix is shared by many objects and operators,
// so the time alone does not distinguish their events.
func (r *Recorder) newName(ref corev1.ObjectReference, now time.Time) string {
	if r.options.NamePrefix == "" {
		return util.GenerateEventName(ref.Name, now.UnixNano())
	}
	return r.options.NamePrefix + strings.ToLower(rand.Text()[:16])
}

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

// namespaceOf returns the namespace for an event about the object. The API server
// accepts events about cluster-scoped objects only in the default namespace.
func namespaceOf(ref corev1.ObjectReference) string {
	if ref.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return ref.Namespace
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
