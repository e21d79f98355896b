package main

import (
	"flag"
	"io"
	"slices"
	"testing"
)

// The deployment calls the manager without a command, and with the flags of kubebuilder.
func TestCommandLine(t *testing.T) {
	root := newCommand(flag.NewFlagSet("manager", flag.ContinueOnError))
	given := []string{"--leader-elect", "--metrics-bind-address=:8443", "--health-probe-bind-address=:8081", "--zap-devel"}
	if command, rest, err := root.Find(given); err != nil || command != root || root.ParseFlags(rest) != nil {
		t.Fatalf("got %v, %q, %v", command, rest, err)
	}
	if elects, err := root.Flags().GetBool("leader-elect"); err != nil || !elects {
		t.Errorf("got %t, %v", elects, err)
	}
	var names []string
	for _, command := range root.Commands() {
		names = append(names, command.Name())
	}
	if !slices.Contains(names, "explain") || !slices.Contains(names, "plan") {
		t.Errorf("got the commands %q", names)
	}
	root.SetArgs([]string{"explain", "--help"})
	root.SetOut(io.Discard)
	if err := root.Execute(); err != nil {
		t.Error(err)
	}
}
