package launch

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingSamplesStartNothing(t *testing.T) {
	var fake fakeCluster
	_, err := WithSamples(fake.start, []string{"nowhere"})(t.Context(), []string{"crd"}, io.Discard)
	if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "the samples cannot be read: ") || fake.definitions != nil {
		t.Errorf("got %v, %+v", err, fake)
	}
}

// The kubeconfig of the fake does not exist.
func TestAClusterWithoutItsSamplesIsStopped(t *testing.T) {
	var fake fakeCluster
	sample := filepath.Join(t.TempDir(), "one.yaml")
	if err := os.WriteFile(sample, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := WithSamples(fake.start, []string{sample})(t.Context(), nil, io.Discard); err == nil || !fake.stopped {
		t.Errorf("got %v, %+v", err, fake)
	}
}
