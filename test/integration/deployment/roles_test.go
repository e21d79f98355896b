package deployment

import (
	"testing"

	"github.com/kopf-go/kopf/test/audit"
)

// elsewhere contains permissions of the manager that these tests do not use.
var elsewhere = map[audit.Use]audit.Elsewhere{
	{For: "kopfpeerings", Verb: "list"}:              streamed,
	{For: "clusterkopfpeerings", Verb: "list"}:       streamed,
	{For: "customresourcedefinitions", Verb: "list"}: streamed,
	{For: "configmaps", Verb: "list"}:                streamed,
	{For: "configmaps", Verb: "delete"}:              {Why: "a handler returns other children than before", Test: "test/integration/ensure.TestChildrenThatAreNoLongerReturnedAreDeleted"},
	{For: "secrets", Verb: "update"}:                 {Why: "a certificate is replaced after a month", Test: "test/integration/permissions.TestFaultsNeedNothingElse"},
}

var streamed = audit.Elsewhere{Why: "API servers from 1.34 on list by watches; older ones, and those that are overloaded, do not", Test: "test/integration/permissions.TestFaultsNeedNothingElse"}

func TestOtherTestsUseTheRest(t *testing.T) { audit.CheckTests(t, elsewhere) }
