//go:build race

package e2e

// A data race makes the operator exit with an error, which the test detects.
var raceFlags = []string{"-race"}
