package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// The defaults of the settings of Watching.
const (
	DefaultServerTimeout     = 5 * time.Minute
	DefaultInactivityTimeout = 3 * time.Minute
	DefaultReconnectBackoff  = 100 * time.Millisecond
	DefaultReconnectLimit    = 30 * time.Second
)

// minServerTimeout is the unit of the timeout in requests.
const minServerTimeout = time.Second

// Watching configures the watches of the objects that the operator handles.
//
// Specification: Networking timeouts.
type Watching struct {
	// ServerTimeout is the time after which the API server ends a watch, or up to twice as
	// long, by chance. The operator then continues the watch where it has ended, so that
	// watches spread over the API servers again. After any other end, it lists the objects. In whole seconds; fractions are dropped.
	// Default: DefaultServerTimeout, as in the controllers of Kubernetes.
	ServerTimeout time.Duration
	// InactivityTimeout is how long a watch can deliver nothing before the operator
	// lists the objects again, because the connection may be dead. A negative value is no limit. Default:
	// DefaultInactivityTimeout; API servers send a bookmark every minute.
	InactivityTimeout time.Duration
	// ReconnectBackoff is the shortest pause before a list or watch is repeated. It doubles
	// with each consecutive failure, up to ReconnectLimit. If the server asks for a longer
	// pause, the operator keeps it. Default: DefaultReconnectBackoff.
	ReconnectBackoff time.Duration
	// ReconnectLimit is the longest pause that the doubling leads to. It is also how long
	// the operator may not notice that the API server is available again. Default:
	// DefaultReconnectLimit.
	ReconnectLimit time.Duration
	// LabelSelectors select the objects that the operator watches, by resources: {"pods": "app=web"}. A
	// key is the text of a selector of resources, as for kopf.Resource, with slashes between its parts;
	// without a version, it is for all versions, and "*" is for all resources. A value is a label selector as
	// for kubectl. An object must match all the values whose keys are for its resource.
	//
	// The API server sends only these objects, so the others cost nothing. To the operator, they do not
	// exist: no handler of events, changes, indices, or children (OnChild) sees them. The children of
	// handlers of Ensure are watched whatever their labels, and requests are admitted and changed for all objects. An
	// object that stops matching is not deleted, and is let go: its daemons and timers stop, and the
	// finalizer of the operator is removed. If it matches again, it is resumed. Default: none.
	LabelSelectors map[string]string
	// FieldSelectors are the same for field selectors: {"pods": "spec.nodeName=a,status.phase!=Succeeded"}. The
	// API server knows only some fields of each resource, and refuses others. Default: none.
	FieldSelectors map[string]string
}

func (w *Watching) fill() {
	fill(&w.ServerTimeout, DefaultServerTimeout)
	fill(&w.InactivityTimeout, DefaultInactivityTimeout)
	fill(&w.ReconnectBackoff, DefaultReconnectBackoff)
	fill(&w.ReconnectLimit, DefaultReconnectLimit)
	w.LabelSelectors = maps.Clone(w.LabelSelectors)
	w.FieldSelectors = maps.Clone(w.FieldSelectors)
}

// Selectors returns the label selector and the field selector of the watches of a resource. Empty ones select all
// objects.
func (w Watching) Selectors(of selector.Resource) (byLabel, byField string) {
	return joinSelectors(w.LabelSelectors, of), joinSelectors(w.FieldSelectors, of)
}

// joinSelectors joins the selectors whose keys are for a resource, in one order.
func joinSelectors(all map[string]string, of selector.Resource) string {
	var found []string
	for key, value := range all {
		if isKeyOf(key, of) {
			found = append(found, value)
		}
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), ",")
}

// UnusedSelectors returns the keys of LabelSelectors and FieldSelectors that are for none of the resources, in order.
func (w Watching) UnusedSelectors(resources []selector.Resource) []string {
	var unused []string
	for _, all := range []map[string]string{w.LabelSelectors, w.FieldSelectors} {
		for key := range all {
			if !slices.ContainsFunc(resources, func(r selector.Resource) bool { return isKeyOf(key, r) }) {
				unused = append(unused, key)
			}
		}
	}
	slices.Sort(unused)
	return slices.Compact(unused)
}

// isKeyOf reports whether a key of a map of selectors is for a resource. Without a version, it is for all versions.
func isKeyOf(key string, r selector.Resource) bool {
	r.Preferred = true
	return parseKey(key).Match(r)
}

func parseKey(key string) selector.Selector { return selector.New(strings.Split(key, "/")...) }

// validateSelectors returns the mistakes in a map of selectors.
func validateSelectors(setting string, all map[string]string, parse func(text string) error) []error {
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := parseKey(key).Err(); err != nil {
			problems = append(problems, fmt.Errorf("settings.Watching.%s[%q]: %w", setting, key, err))
		}
		text := all[key]
		if strings.TrimSpace(text) == "" {
			problems = append(problems, fmt.Errorf("settings.Watching.%s[%q] is empty: remove it to watch all objects", setting, key))
		} else if err := parse(text); err != nil {
			problems = append(problems, fmt.Errorf("settings.Watching.%s[%q] is %q, which cannot be parsed: %w", setting, key, text, err))
		}
	}
	return problems
}

func (w Watching) validate() error {
	problems := validateSelectors("LabelSelectors", w.LabelSelectors, func(text string) error {
		_, err := labels.Parse(text)
		return err
	})
	problems = append(problems, validateSelectors("FieldSelectors", w.FieldSelectors, func(text string) error {
		_, err := fields.ParseSelector(text)
		return err
	})...)
	if w.ServerTimeout != 0 && w.ServerTimeout < minServerTimeout {
		problems = append(problems, fmt.Errorf("settings.Watching.ServerTimeout is less than a second: %v", w.ServerTimeout))
	}
	if err := errors.Join(
		notNegative("Watching.ReconnectBackoff", w.ReconnectBackoff),
		notNegative("Watching.ReconnectLimit", w.ReconnectLimit),
	); err != nil {
		return errors.Join(append(problems, err)...)
	}
	w.fill()
	if w.ReconnectLimit < w.ReconnectBackoff {
		problems = append(problems, fmt.Errorf("settings.Watching.ReconnectLimit is shorter than ReconnectBackoff: %v and %v", w.ReconnectLimit, w.ReconnectBackoff))
	}
	return errors.Join(problems...)
}
