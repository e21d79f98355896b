package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// program is a running program that is the operator in place of this process, and its meter.
type program struct {
	command  *exec.Cmd
	profiles string // URL
	// heap are the bytes of Go objects after the last collection: to ask more often would be
	// work for the program.
	heap    int64
	profile string // path of the CPU profile that others write
}

// stopTimeout is how long the program may take to stop.
const stopTimeout = 30 * time.Second

// startProgram starts Metacontroller, until the context is done. It has no rate limit, and
// its log goes to the null device.
func startProgram(ctx context.Context, path, kubeConfig string, workers int) (*program, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, path,
		"-workers="+strconv.Itoa(workers), "-client-go-qps=-1",
		"-metrics-address=0", "-health-probe-bind-address=0", "-pprof-address="+address)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeConfig)
	// With the profiles, it does not stop on SIGTERM.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = stopTimeout
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting Metacontroller: %w", err)
	}
	return &program{command: command, profiles: "http://" + address + "/debug/pprof/"}, nil
}

// freeAddress returns an address on loopback that is not in use.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// wait returns when the program has exited, with an error unless the context is done.
func (p *program) wait(ctx context.Context) error {
	_ = p.command.Wait() // the state says more, and a failed stop does not affect the figures
	if ctx.Err() == nil {
		return fmt.Errorf("the program exited early: %s", p.command.ProcessState)
	}
	return nil
}

func (p *program) measure(s *sample) error {
	s.Heap = p.heap
	return s.process(p.command.Process.Pid)
}

// collect makes the program collect its garbage twice, as ownProcess does.
func (p *program) collect() error {
	for range 2 {
		text, err := p.get("heap?gc=1&debug=1")
		if err != nil {
			return err
		}
		if p.heap, err = heapAlloc(text); err != nil {
			return err
		}
	}
	return nil
}

// heapAlloc returns runtime.MemStats.HeapAlloc of a heap profile as text.
func heapAlloc(profile []byte) (int64, error) {
	lines := bufio.NewScanner(bytes.NewReader(profile))
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), "# HeapAlloc = "); found {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, errors.Join(errors.New("the heap profile has no HeapAlloc"), lines.Err())
}

// get returns a profile.
func (p *program) get(profile string) ([]byte, error) {
	asking := http.Client{Timeout: time.Minute}
	response, err := asking.Get(p.profiles + profile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s%s: %s", p.profiles, profile, response.Status)
	}
	return io.ReadAll(response.Body)
}

// startProfile starts no CPU profile: the program would have to know its duration.
func (p *program) startProfile(path string) error {
	p.profile = path
	return nil
}

func (p *program) endProfile() error {
	profile, err := p.get("heap")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Clean(heapProfile(p.profile)), profile, 0o600)
}
