package settings

import (
	"errors"
	"fmt"
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
		s.validateName(),
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
		s.Admission.validate(),
		s.Recording.validate(),
	)
}

// maxName is the maximum length of a field manager in bytes.
const maxName = 128

func (s Settings) validateName() error {
	switch {
	case !utf8.ValidString(s.Name):
		return fmt.Errorf("settings.Name is not valid UTF-8: %q", s.Name)
	case len(s.Name) > maxName:
		return fmt.Errorf("settings.Name has %d bytes, but as a field manager it can have %d: %q", len(s.Name), maxName, s.Name)
	case strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("settings.Name has characters that cannot be printed: %q", s.Name)
	}
	return nil
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
	return errors.Join(p.validateFinalizer(), validateStorage("DiffBase", p.DiffBase), validateStorage("Progress", p.Progress))
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

func (p Persistence) validateFinalizer() error {
	if p.Finalizer == "" {
		return nil
	}
	if faults := validation.IsQualifiedName(p.Finalizer); len(faults) > 0 {
		return fmt.Errorf("settings.Persistence.Finalizer %q is not valid: %s; use a name like %q",
			p.Finalizer, faults[0], "my-operator.example.com/finalizer")
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
