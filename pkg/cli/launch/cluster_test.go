package launch

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fakeCluster records the definitions that it was started with, and whether it was stopped.
type fakeCluster struct {
	definitions []string
	stopped     bool
}

func (f *fakeCluster) start(_ context.Context, definitions []string, _ io.Writer) (*Cluster, error) {
	f.definitions = definitions
	return &Cluster{Kubeconfig: "/k", Stop: func() error { f.stopped = true; return nil }}, nil
}

func TestDefinitionsOfTheProjectAreInstalled(t *testing.T) {
	bases := filepath.Join(DefaultDefinitions, "bases")
	tests := map[string]struct{ exists, given, want []string }{
		"nothing":             {},
		"a folder":            {exists: []string{DefaultDefinitions}, want: []string{DefaultDefinitions}},
		"that of kubebuilder": {exists: []string{bases}, want: []string{DefaultDefinitions, bases}},
		"another one":         {exists: []string{bases, "mine"}, given: []string{"mine"}, want: []string{"mine"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, path := range test.exists {
				if err := os.MkdirAll(path, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			var fake fakeCluster
			arguments, _, err := Connection(t.Context(), fake.start, test.given, io.Discard)
			if err != nil || !slices.Equal(arguments, []string{"--kubeconfig=/k"}) || !slices.Equal(fake.definitions, test.want) || fake.stopped {
				t.Errorf("got %v, %v, %+v", arguments, err, fake)
			}
		})
	}
}

func TestAnInterruptedClusterIsStopped(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var fake fakeCluster
	if _, _, err := Connection(ctx, fake.start, nil, io.Discard); !errors.Is(err, context.Canceled) || !fake.stopped {
		t.Errorf("got %v, %+v", err, fake)
	}
}

func TestMissingDefinitionsStartNothing(t *testing.T) {
	var fake fakeCluster
	if _, _, err := Connection(t.Context(), fake.start, []string{"nowhere"}, io.Discard); !errors.Is(err, os.ErrNotExist) || fake.definitions != nil {
		t.Errorf("got %v, %+v", err, fake)
	}
}

func TestNoClusterNeedsNoArguments(t *testing.T) {
	arguments, stop, err := Connection(t.Context(), nil, nil, io.Discard)
	if len(arguments) > 0 || err != nil || stop() != nil {
		t.Errorf("got %v, %v", arguments, err)
	}
}
