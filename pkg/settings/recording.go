package settings

import (
	"errors"
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Recording configures a recording of what the operator sees and decides, for
// kopftest.Replay.
type Recording struct {
	// File is the file to write. It is emptied first, and only its owner can read it; the
	// values in objects are replaced by hashes. Default: none; nothing is recorded.
	File string
	// Fields are the fields whose values stay readable in the recording, with everything
	// below: "spec.size". Filters that calculate with a value need that. Default: none.
	Fields []string
}

func (r Recording) validate() error {
	var problems []error
	for _, field := range r.Fields {
		if _, err := object.ParsePath(field); err != nil {
			problems = append(problems, fmt.Errorf("settings.Recording.Fields: %w", err))
		}
	}
	if len(r.Fields) > 0 && r.File == "" {
		problems = append(problems, errors.New("settings.Recording.Fields needs settings.Recording.File"))
	}
	return errors.Join(problems...)
}
