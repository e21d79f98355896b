package handling

import "github.com/kopf-go/kopf/test/operators"

// attempts returns the notes of a handler that was called the given number of times.
func attempts(id string, count int) []string {
	calls := &operators.Calls{}
	for retry := range count {
		calls.Note("%s %d", id, retry)
	}
	return calls.All()
}
