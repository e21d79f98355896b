package main

import "testing"

func TestOperatorsWithWebhooksAreKnownByTheirImports(t *testing.T) {
	for name, want := range map[string]bool{"17-admission": true, "99-all-at-once": true, "01-minimal": false, "typed": false} {
		t.Run(name, func(t *testing.T) {
			example, err := findExample(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := example.registersWebhooks(t.Context())
			if got != want || err != nil {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}
