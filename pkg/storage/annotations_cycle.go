package storage

import (
	"cmp"
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// cycleSuffix makes the place of an open cycle's essence from that of the base.
const cycleSuffix = "-started"

// cycleKey is where the essence of an open cycle is kept: beside the base, under
// a prefix of which all operators know that it is an operator's. Prefixes that
// begin with "kopf." are not marked, and Kopf would take the annotation for a
// change of the object; so theirs goes under the one prefix that it always knows.
func (s AnnotationsDiffBase) cycleKey(body *object.Body) string {
	name := cmp.Or(s.Key, DefaultKey) + cycleSuffix
	prefix := s.prefix()
	if !needsMarker(prefix) && !isKnownPrefix(prefix) {
		name = prefix + "/" + name
		prefix = DefaultPrefix
	}
	return keyV2(prefix, marked(name, body))
}

// FetchCycle reads the essence of the open cycle.
func (s AnnotationsDiffBase) FetchCycle(_ context.Context, body *object.Body) (object.Essence, error) {
	return s.fetch(body, []string{s.cycleKey(body)}, "state at the start of the handling cycle")
}

// StoreCycle writes the essence of the open cycle.
func (s AnnotationsDiffBase) StoreCycle(_ context.Context, body *object.Body, into Patch, essence object.Essence) error {
	return s.store(body, into, []string{s.cycleKey(body)}, essence)
}

// PurgeCycle removes the essence of the open cycle.
func (s AnnotationsDiffBase) PurgeCycle(_ context.Context, body *object.Body, into Patch) error {
	into.remove(annotation(s.cycleKey(body)), body)
	return nil
}
