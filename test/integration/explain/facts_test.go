package explain

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/internal/golden"
	"github.com/kopf-go/kopf/pkg/inspect"
)

// sentences has the whole answers. The tests compare facts; a change of wording changes this file alone.
var sentences = golden.In("testdata/sentences.golden")

// answers waits until an answer has the facts, and the sentences of the section.
func (s *scene) answers(part string, facts []string, answer func() (*inspect.Explanation, error)) {
	s.t.Helper()
	s.Expect(facts).NotTo(gomega.BeEmpty())
	section, former, since := golden.Section(s.t, part), "", time.Now()
	s.Eventually(func(g gomega.Gomega) {
		said, err := answer()
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(factsOf(s, said)).To(gomega.Equal(facts))
		text := steady(neutral(s, said.Text(inspect.Style{})))
		if !golden.Updating() {
			g.Expect(sentences.Difference(section, text)).To(gomega.BeEmpty())
			return
		}
		if text != former {
			former = text
			since = time.Now()
		}
		g.Expect(time.Since(since)).To(gomega.BeNumerically(">", time.Second)) // nothing changes anymore
	}).Should(gomega.Succeed())
	if golden.Updating() {
		sentences.Write(s.t, section, former)
	}
}

// states waits until the answer about an object has exactly the facts, and the sentences of the section.
func (s *scene) states(name, part string, facts ...string) {
	s.t.Helper()
	s.answers(part, facts, s.explained(name))
}

// writes expects a text of a command, as the section has it.
func (s *scene) writes(part, text string) {
	s.t.Helper()
	sentences.Check(s.t, part, neutral(s, text))
}

// shows waits until an answer has the facts, among others.
func (s *scene) shows(name string, facts ...any) {
	s.t.Helper()
	s.Eventually(func() ([]string, error) {
		said, err := s.explained(name)()
		if err != nil {
			return nil, err
		}
		return factsOf(s, said), nil
	}).Should(gomega.ContainElements(facts...))
}

// factsOf returns what an answer says as values: what has happened to the object, what holds it, the states
// of its handlers and children, and what the operator is doing.
func factsOf(s *scene, e *inspect.Explanation) []string {
	facts := []string{cmp.Or(e.Reason, "no cause")}
	add := func(is bool, format string, args ...any) {
		if is {
			facts = append(facts, fmt.Sprintf(format, args...))
		}
	}
	add(e.Failing != "", "failing")
	facts = append(facts, e.Changes...)
	add(len(e.Holds) > 0, "held")
	add(len(e.PossibleHolds) > 0, "perhaps held")
	for _, h := range e.Handlers {
		add(true, "%s (%s): %s", h.ID, h.Kind, h.State)
	}
	for _, child := range e.Children {
		add(true, "%s (%s): %s", strings.ReplaceAll(child.Object, s.namespace, "default"), child.Handler, child.State)
		add(len(child.Accepted) > 0, "accepted %s", strings.Join(child.Accepted, ", "))
	}
	add(len(e.Requests) > 0, "requested")
	if e.Now != nil {
		facts = append(facts, activity(e.Now)...)
	}
	return facts
}

// activity returns what the operator is doing for the object.
func activity(now *inspect.Now) []string {
	var facts []string
	for _, call := range now.Calls {
		facts = append(facts, call.Handler+" is running")
	}
	for _, id := range now.Limited {
		facts = append(facts, id+" waits for a slot")
	}
	for _, b := range now.Background {
		facts = append(facts, fmt.Sprintf("%s %s: %s", b.Kind, b.Handler, b.State))
	}
	for fact, is := range map[string]bool{
		"paused": now.Paused, "on standby": !now.Leading, "unknown object": now.Version == "", "contention": now.Contention.Duration > 0,
		"idle": !now.Handling && now.From.IsZero(), "looks later": !now.Handling && now.From.After(now.At),
	} {
		if is {
			facts = append(facts, fact)
		}
	}
	slices.Sort(facts)
	return facts
}

// unsteady are lines about more than the object, and sections that grow.
var unsteady = regexp.MustCompile(`(?m)^  - For all objects: .*\n|^Events\n(  .*\n)*\n?`)

// steady returns what is the same in all runs of an answer.
func steady(text string) string { return unsteady.ReplaceAllString(text, "") }
