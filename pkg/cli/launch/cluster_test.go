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

func TestDefinitionsOfProjectsAreFound(t *testing.T) {
	tests := map[string]struct{ exists, want []string }{
		"nothing":                      {},
		"a folder":                     {exists: []string{filepath.Join("config", "crd")}, want: []string{filepath.Join("config", "crd")}},
		"that of kubebuilder":          {exists: []string{filepath.Join("config", "crd", "bases")}, want: []string{filepath.Join("config", "crd")}},
		"a file":                       {exists: []string{"crd.yaml"}, want: []string{"crd.yaml"}},
		"next to the handlers":         {exists: []string{filepath.Join("handlers", "crds")}, want: []string{filepath.Join("handlers", "crds")}},
		"of the project and a package": {exists: []string{"crd", filepath.Join("handlers", "crd.yaml")}, want: []string{"crd", filepath.Join("handlers", "crd.yaml")}},
		"something similar":            {exists: []string{"crd.go", "crd_test"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, path := range test.exists {
				if err := os.MkdirAll(path, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if got := Definitions(".", "./handlers", "example.com/elsewhere", "."); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestAClusterIsStartedWithDefinitions(t *testing.T) {
	definitions := []string{t.TempDir()}
	var fake fakeCluster
	arguments, _, err := Connection(t.Context(), fake.start, definitions, io.Discard)
	if err != nil || !slices.Equal(arguments, []string{"--kubeconfig=/k"}) || !slices.Equal(fake.definitions, definitions) || fake.stopped {
		t.Errorf("got %v, %v, %+v", arguments, err, fake)
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
