package main

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// Objects of all versions are the same after every way there and back.
func TestNothingIsLost(t *testing.T) {
	registry := kopf.NewRegistry()
	declare(registry)
	kopftest.CheckConversions(t, registry, kopftest.ConversionCheck{CRDs: []string{"../crd/sites.yaml"}})
}
