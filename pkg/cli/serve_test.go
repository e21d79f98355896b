package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/pkg/settings"
)

// serving records what it is asked for.
type serving struct {
	files    []string
	settings func(*settings.Settings) error
	ran      *Invocation
	how      Serve
	ended    bool
	program  *Program // nil for an error
}

func (s *serving) ApplySettings(files []string, of *settings.Settings) error {
	s.files = files
	if s.settings == nil {
		return nil
	}
	return s.settings(of)
}

func (s *serving) Variables([]string) ([]string, error) {
	return []string{"DATABASE_URL", "TOKEN"}, nil
}

func (s *serving) Run(_ context.Context, _ []string, in Invocation, how Serve) error {
	s.ran = &in
	s.how = how
	return nil
}

func (s *serving) Commands(_ context.Context, files []string) ([]*cobra.Command, func() error, error) {
	s.files = files
	if files[0] == "broken.yaml" {
		return nil, nil, errors.New("broken.yaml:1: nothing")
	}
	load := func(settings.Settings) (Program, error) {
		if s.program != nil {
			return *s.program, nil
		}
		return Program{}, errors.New("this is the program of the files")
	}
	return Commands(load), func() error { s.ended = true; return nil }, nil
}

func (s *serving) CheckWorker(_ context.Context, command []string, out, _ io.Writer) error {
	s.files = command
	_, _ = io.WriteString(out, "the report\n")
	if command[0] == "broken" {
		return errors.New("the worker does not conform")
	}
	return nil
}

func TestConformanceReportsAWorker(t *testing.T) {
	s := &serving{}
	if r := run(t, newKopfCommand(nil, s), "conformance", "--", "python3", "-u", "worker.py"); r.code != ExitOK || r.out != "the report\n" || !slices.Equal(s.files, []string{"python3", "-u", "worker.py"}) {
		t.Errorf("got %+v for %q", r, s.files)
	}
	if r := run(t, newKopfCommand(nil, s), "conformance", "broken"); r.code != ExitError || r.out != "the report\n" || r.log != "" {
		t.Errorf("got %+v", r)
	}
	if r := run(t, newKopfCommand(nil, s), "conformance"); r.code != ExitUsage || !strings.Contains(r.log, "no worker is given") {
		t.Errorf("got %+v", r)
	}
}

func TestServeRunsFilesWithTheirSettings(t *testing.T) {
	hideCluster(t)
	s := &serving{settings: func(of *settings.Settings) error {
		of.Name = "from-the-file"
		of.Scope.Namespaces = []string{"a", "b"}
		of.Peering.Priority = 5
		of.Execution.GracePeriod = time.Minute
		of.Replicas.LeaderElection = true
		return nil
	}}
	t.Setenv("KOPF_GRACE_PERIOD", "7s")
	r := run(t, newKopfCommand(noCluster, s), "serve", "one.yaml", "two.yaml", "--priority", "9", "--standalone", "--watch")
	if r.code != ExitOK || s.ran == nil || s.how != (Serve{Watch: true}) || !slices.Equal(s.files, []string{"one.yaml", "two.yaml"}) {
		t.Fatalf("got %+v, and %+v", r, s)
	}
	got := s.ran.Settings
	if got.Name != "from-the-file" || !slices.Equal(got.Scope.Namespaces, []string{"a", "b"}) || !got.Replicas.LeaderElection {
		t.Errorf("the settings of the file are lost: %+v", got)
	}
	if got.Peering.Priority != 9 || got.Execution.GracePeriod != 7*time.Second || !got.Peering.Standalone {
		t.Errorf("flags and variables do not take precedence: %+v", got)
	}
	for _, flags := range [][]string{{"-n", "c"}, {"-A"}} {
		run(t, newKopfCommand(noCluster, s), append([]string{"serve", "one.yaml"}, flags...)...)
		if slices.Contains(s.ran.Settings.Scope.Namespaces, "a") {
			t.Errorf("with %q, the namespaces are %q", flags, s.ran.Settings.Scope.Namespaces)
		}
	}
}

func TestServeNeedsFilesOrTheControllersOfTheCluster(t *testing.T) {
	hideCluster(t)
	s := &serving{}
	if r := run(t, newKopfCommand(noCluster, s), "serve"); r.code != ExitUsage || !strings.Contains(r.log, "no file is given: use kopf serve operator.yaml") {
		t.Errorf("got %+v", r)
	}
	t.Setenv("KOPF_METACONTROLLER", "true")
	if r := run(t, newKopfCommand(noCluster, s), "serve"); r.code != ExitOK || s.how != (Serve{Metacontroller: true}) || len(s.files) != 0 {
		t.Errorf("got %+v, and %+v", r, s)
	}
}

func TestServeReportsMistakesOfFiles(t *testing.T) {
	hideCluster(t)
	s := &serving{settings: func(*settings.Settings) error { return errors.New("one.yaml:3: a mistake") }}
	if r := run(t, newKopfCommand(noCluster, s), "serve", "one.yaml"); r.code != ExitError || r.log != "kopf: one.yaml:3: a mistake\n" || s.ran != nil {
		t.Errorf("got %+v", r)
	}
	s.settings = func(of *settings.Settings) error { of.Execution.MaxCalls = -1; return nil }
	if r := run(t, newKopfCommand(noCluster, s), "serve", "one.yaml"); r.code != ExitUsage || !strings.Contains(r.log, "MaxCalls") || s.ran != nil {
		t.Errorf("got %+v", r)
	}
}

// The commands about operators take files in place of packages.
func TestCommandsAnswerFromFiles(t *testing.T) {
	hideCluster(t)
	for _, line := range []string{"explain one.yaml two.json kopfexample/a", "rbac one.yaml --leader-elect", "plan one.yml", "manifests one.yaml --image a"} {
		s := &serving{}
		r := run(t, newKopfCommand(noCluster, s), strings.Fields(line)...)
		if r.code != ExitError || !strings.Contains(r.log, "this is the program of the files") || !s.ended {
			t.Errorf("%s: got %+v, and %+v", line, r, s)
		}
	}
	if r := run(t, newKopfCommand(noCluster, &serving{}), "explain", "one.yaml", "--frobnicate"); r.code != ExitUsage || !strings.Contains(r.log, "unknown flag: --frobnicate") {
		t.Errorf("got %+v", r)
	}
	if r := run(t, newKopfCommand(noCluster, &serving{}), "explain", "one.yaml", "--help"); r.code != ExitOK || !strings.Contains(r.out, "explain one.yaml KIND/NAME [flags]") {
		t.Errorf("got %+v", r)
	}
	if r := run(t, newKopfCommand(noCluster, &serving{}), "explain", "broken.yaml", "a/b"); r.code != ExitError || r.log != "kopf: broken.yaml:1: nothing\n" {
		t.Errorf("got %+v", r)
	}
	if !isHandlerFile("a/b.yaml") || isHandlerFile("./handlers") || isHandlerFile("example.com/handlers") {
		t.Error("files and packages are mixed up")
	}
}

// What programs and workers get of the environment is in the deployment.
func TestManifestsHaveTheVariablesOfFiles(t *testing.T) {
	hideCluster(t)
	r := run(t, newKopfCommand(noCluster, &serving{program: &Program{}}), "manifests", "one.yaml", "--name", "shops", "-n", "stores")
	if r.code != ExitOK || !strings.Contains(r.out, `name: "DATABASE_URL"`) || !strings.Contains(r.out, `name: "TOKEN"`) {
		t.Errorf("got %+v", r)
	}
	if !strings.Contains(r.log, "--from-literal=DATABASE_URL=… --from-literal=TOKEN=…") {
		t.Errorf("got the log %s", r.log)
	}
}

func TestServeInstallsTheDefinitionsNextToItsFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "crd.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := new(clusterFlags).definitionsOf(foldersOf([]string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")}))
	if !slices.Equal(got, []string{filepath.Join(dir, "crd.yaml")}) {
		t.Errorf("got %q", got)
	}
}
