package main

import (
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

// The limits that this repository keeps. The conventions in CONTRIBUTING.md explain
// them.
const (
	maxMethods   = 25  // of a receiver
	maxFiles     = 20  // of a package, without tests
	maxLines     = 300 // of a file, without tests
	maxAmbiguous = 8   // percent, within a package
	maxFunction  = 41  // lines
	maxUpward    = 12  // arrows between the engine's rooms
)

func TestHouseKeepsItsLimits(t *testing.T) {
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	found, err := measure(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range found.receivers {
		if one.methods > maxMethods {
			t.Errorf("%s has %d methods, at most %d are allowed: divide the type", one.name, one.methods, maxMethods)
		}
	}
	for _, one := range found.sizes.packages {
		if one.count > maxFiles {
			t.Errorf("%s has %d files, at most %d are allowed: divide the package", one.name, one.count, maxFiles)
		}
	}
	for _, one := range found.sizes.longest {
		if one.count > maxLines {
			t.Errorf("%s has %d lines, at most %d are allowed: divide the file", one.name, one.count, maxLines)
		}
	}
	if percent := found.names.within.percent(); percent > maxAmbiguous {
		t.Errorf("%.1f %% of the unexported functions have names with more than one meaning in their package, at most %d %% are allowed; rename some of %v",
			percent, maxAmbiguous, found.names.ambiguous)
	}
	if found.functions.maximum > maxFunction {
		t.Errorf("%s has %d lines, at most %d are allowed: divide the function", found.functions.longest, found.functions.maximum, maxFunction)
	}
	for _, one := range found.layers {
		t.Errorf("the import %s runs against the layers of test/arch", one)
	}
	for _, one := range found.folders.upward {
		t.Errorf("the folders under pkg import each other: %s", one)
	}
	if found.engine.back > maxUpward {
		t.Errorf("%d arrows run back up between the engine's rooms, at most %d are allowed: %v", found.engine.back, maxUpward, found.engine.upward)
	}
	for _, name := range found.homeless {
		t.Errorf("%s/%s has no room: give it one in hack/house/rooms.go", enginePackage, name)
	}
}
