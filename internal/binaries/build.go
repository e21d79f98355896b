package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// program is one program of the control plane, and how to link it.
type program struct {
	name, pkg, version, ldflags, cost string
}

// strip leaves out what only debuggers need.
const strip = "-s -w"

// programs returns the programs of a control plane. The release is linked into
// kube-apiserver, which would otherwise report v0.0.0 to clients.
func programs(pinned versions) []program {
	return []program{
		{name: Etcd, pkg: etcdModule, version: pinned.etcd, ldflags: strip, cost: "seconds"},
		{
			name: APIServer, pkg: kubernetesModule + "/cmd/kube-apiserver", version: pinned.kubernetes,
			ldflags: strip + " -X k8s.io/component-base/version.gitVersion=" + pinned.kubernetes,
			cost:    "about 5 minutes on two cores",
		},
	}
}

// build compiles the program from the module in source to the folder out.
func (p program) build(ctx context.Context, source, out string, progress io.Writer) error {
	say(progress, "building %s %s from source, once per release (%s)", p.name, p.version, p.cost)
	began := time.Now()
	log := &buildLog{}
	done := make(chan error, 1)
	// The user's GOFLAGS apply, except for flags that would break or slow down the build of the module.
	command := exec.CommandContext(ctx, "go", "build", "-v", "-mod=readonly", "-modfile=", "-race=false",
		"-ldflags", p.ldflags, "-o", filepath.Join(out, p.name), p.pkg)
	command.Dir = source
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = tick
	command.Stderr = log
	go func() { done <- command.Run() }()

	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			say(progress, "%s: %s, %s", p.name, seconds(time.Since(began)), log)
		case err := <-done:
			if err != nil {
				return fmt.Errorf("building %s %s failed after %s: %w\n%s",
					p.name, p.version, seconds(time.Since(began)), err, log.complaints())
			}
			say(progress, "%s: built in %s", p.name, seconds(time.Since(began)))
			return nil
		}
	}
}
