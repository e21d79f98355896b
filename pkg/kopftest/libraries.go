package kopftest

import (
	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/operator"
)

// silenceLibraries lets controller-runtime discard its log, unless the test has set a logger: without any, it complains on
// standard error after some time.
func silenceLibraries() { operator.AdoptController(logr.Discard()) }
