package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/storage"
)

// Validate returns an error that lists all mistakes in the settings.
func (s Settings) Validate() error {
	return errors.Join(
		validateName("Name", s.Name),
		s.validateFormerNames(),
		s.validateScope(),
		s.Persistence.validate(),
		notNegative("Persistence.ConsistencyTimeout", s.Persistence.ConsistencyTimeout),
		s.Execution.validateBackoff(),
		notNegative("Execution.CheckpointInterval", s.Execution.CheckpointInterval),
		notNegative("Execution.Workers", s.Execution.Workers),
		notNegative("Execution.MaxCalls", s.Execution.MaxCalls),
		notNegative("Execution.GracePeriod", s.Execution.GracePeriod),
		notNegative("Execution.ShutdownTimeout", s.Execution.ShutdownTimeout),
		notNegative("Background.CancellationPolling", s.Background.CancellationPolling),
		s.Queueing.validate(),
		s.Posting.validate(),
		s.Networking.validate(),
		s.Watching.validate(),
		s.Peering.validate(),
		s.Replicas.validate(),
		s.Health.validate(),
		s.Page.validate(),
		s.Admission.validate(),
		s.Recording.validate(),
	)
}

// maxName is the maximum length of a field manager in bytes.
const maxName = 128

func validateName(setting, name string) error {
	switch {
	case !utf8.ValidString(name):
		return fmt.Errorf("settings.%s is not valid UTF-8: %q", setting, name)
	case len(name) > maxName:
		return fmt.Errorf("settings.%s has %d bytes, but as a field manager it can have %d: %q", setting, len(name), maxName, name)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("settings.%s has characters that cannot be printed: %q", setting, name)
	}
	return nil
}

func (s Settings) validateFormerNames() error {
	var problems []error
	for i, name := range s.FormerNames {
		problems = append(problems, validateName("FormerNames", name))
		switch {
		case name == "":
			problems = append(problems, errors.New("settings.FormerNames has an empty name: an operator without a name has no children"))
		case name == s.Name:
			problems = append(problems, fmt.Errorf("settings.FormerNames has the current name %q: remove it there", name))
		case slices.Contains(s.FormerNames[:i], name):
			problems = append(problems, fmt.Errorf("settings.FormerNames has the name %q twice", name))
		}
	}
	if len(s.FormerNames) > 0 && s.Name == "" {
		problems = append(problems, errors.New("settings.FormerNames needs the current name: set settings.Name"))
	}
	return errors.Join(problems...)
}

func (e Execution) validateBackoff() error {
	if err := e.Backoff.Validate(); err != nil {
		return fmt.Errorf("settings.Execution.Backoff: %w", err)
	}
	return nil
}

func notNegative[T int | time.Duration](name string, value T) error {
	if value < 0 {
		return fmt.Errorf("settings.%s is negative: %v", name, value)
	}
	return nil
}

func (p Persistence) validate() error {
	var finalizer error
	if faults := validation.IsQualifiedName(p.Finalizer); p.Finalizer != "" && len(faults) > 0 {
		finalizer = fmt.Errorf("settings.Persistence.Finalizer %q is not valid: %s; use a name like %q",
			p.Finalizer, faults[0], "my-operator.example.com/finalizer")
	}
	return errors.Join(finalizer, validateStorage("DiffBase", p.DiffBase), validateStorage("Progress", p.Progress))
}

func validateStorage(name string, declared any) error {
	validator, ok := declared.(storage.Validator)
	if !ok {
		return nil
	}
	if err := validator.Validate(); err != nil {
		return fmt.Errorf("settings.Persistence.%s: %w", name, err)
	}
	return nil
}

func (q Queueing) validate() error {
	return errors.Join(
		noPauseIntoThePast("Queueing.ErrorDelays", q.ErrorDelays),
		noPauseIntoThePast("Queueing.ContentionDelays", q.ContentionDelays),
		notNegative("Queueing.EventBacklog", q.EventBacklog),
	)
}
