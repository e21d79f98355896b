package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// requestPrefix is that of the annotations with requests.
const requestPrefix = ourPrefix + "request"

// abandon requests to release an object that is held by a failure. The subject is locked.
func (s *subject) abandon(now state) {
	if record := now.record("holder"); !s.abandoned && record != nil && record.Failure {
		s.abandoned = true
		s.request(request.Skip, "now holder "+request.Abandon)
	}
}

// ask makes a random request. The subject is locked.
func (s *subject) ask(dice *rand.Rand) {
	id := oneOf(dice, "updated", "limited", "labeled", "resumed")
	verb := oneOf(dice, request.Retry, request.Rerun, request.Skip)
	s.asked[verb] = fmt.Sprintf("token-%d", s.reads+s.writes)
	s.request(verb, s.asked[verb]+" "+id)
	s.ledger.Loosen(id)
	s.loose[id] = true
}

// suspend makes the operator leave the object alone for a while.
func (s *subject) suspend(dice *rand.Rand) {
	s.request(request.Suspend, time.Now().Add(upTo(dice, 300*time.Millisecond)).UTC().Format(time.RFC3339Nano))
}

// isSuspended reports whether handlers must not be called for the object.
func isSuspended(body *object.Body) bool {
	until, err := time.Parse(time.RFC3339Nano, body.Annotations()[requestPrefix+"-"+string(request.Suspend)])
	return err == nil && time.Until(until) > time.Millisecond
}

// isHonored returns an error if a request was not honored. The subject is locked.
func (s *subject) isHonored(now state) error {
	handled := now.body.Annotations()[requestPrefix+"s-handled"]
	for verb, token := range s.asked {
		if !strings.Contains(handled, token+" ") {
			return fmt.Errorf("the request to %s is not honored: %s", verb, handled)
		}
	}
	return nil
}

// request annotates the object. The subject is locked.
func (s *subject) request(verb request.Verb, text string) {
	patch := textOf(map[string]any{"metadata": map[string]any{"annotations": map[string]any{requestPrefix + "-" + string(verb): text}}})
	obj := s.object.DeepCopy()
	err := s.storm.cluster.Client().Patch(context.Background(), obj, merge(patch))
	s.changed("requested "+string(verb)+" of", obj, err)
}
