// Command operator is the operator that test/swap runs. It compiles with every state of the
// repository that can be swapped, so it uses only what all of them have: untyped handlers, which
// are literals. What former states do not have is in later.go; former.go is in its place there.
// handlers.py is the same operator for Kopf.
//
// The object says what its handlers do: spec.plan has the attempts that fail, by the id of the
// handler. The handlers report the start and the end of every call to the journal of test/swap.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	registry := kopf.NewRegistry()
	declare(registry)
	options := kopf.Options{Registry: registry, Config: config, Logger: zap.New(zap.UseDevMode(true))}
	options.Settings.Scope.Namespaces = []string{os.Getenv("SWAP_NAMESPACE")}
	options.Settings.Posting.Disabled = true
	return kopf.Run(ctx, options)
}

func declare(registry *kopf.Registry) {
	examples := kopf.Resource("kopf.dev", "v1", "kopfexamples")
	backoff := 300 * time.Millisecond
	both := follow("both") // one function, because it is one handler
	ready := func(ctx context.Context, _ *kopf.Startup) error { return report(ctx, entry{Phase: "ready"}) }
	registry.OnStartup(ready, kopf.ID("ready"))
	registry.OnCreate(examples, follow("create_one"), kopf.ID("create_one"), kopf.Backoff(backoff))
	registry.OnCreate(examples, follow("create_two"), kopf.ID("create_two"), kopf.Backoff(backoff))
	registry.OnUpdate(examples, follow("update"), kopf.ID("update"), kopf.Backoff(backoff))
	registry.OnCreate(examples, both, kopf.ID("both"), kopf.Backoff(backoff))
	registry.OnUpdate(examples, both, kopf.ID("both"), kopf.Backoff(backoff))
	registry.OnField(examples, "spec.a", follow("field/spec.a"), kopf.ID("field"), kopf.Backoff(backoff))
	registry.OnCreate(examples, parent, kopf.ID("parent"), kopf.Backoff(backoff))
	registry.OnUpdate(examples, parent, kopf.ID("parent"), kopf.Backoff(backoff))
	registry.OnResume(examples, follow("resumed"), kopf.ID("resumed"), kopf.Backoff(backoff))
	registry.OnDelete(examples, follow("delete_one"), kopf.ID("delete_one"), kopf.Backoff(backoff))
	registry.OnDelete(examples, follow("delete_two"), kopf.ID("delete_two"), kopf.Backoff(backoff))
	declareOrdered(registry, examples, backoff)
}

// parent has a sub-handler for each item.
func parent(ctx context.Context, c *kopf.Change) error {
	items, _ := c.Spec().Strings("items")
	for _, item := range items {
		c.Subhandler(item, follow("parent/"+item), kopf.Backoff(300*time.Millisecond))
	}
	return follow("parent")(ctx, c)
}

// follow returns a handler that does what the object says.
func follow(id string) func(context.Context, *kopf.Change) error {
	return func(ctx context.Context, c *kopf.Change) error {
		e := entry{
			Phase: "start", Handler: id, UID: string(c.UID()), Name: c.Name(), Reason: string(c.Reason()), Retry: c.Retry(),
			Version: c.Body().ResourceVersion(), Old: stepOf(c.Old().Any()), New: stepOf(c.New().Any()),
		}
		e.Step, _ = c.Spec().Int64("step")
		if err := report(ctx, e); err != nil {
			return err
		}
		text, _ := c.Spec().String("plan", id)
		p, err := e.follow(ctx, text)
		if err != nil {
			return err
		}
		if p.Result {
			c.SetResult(map[string]any{"step": e.Step})
		}
		return nil
	}
}

// follow does what the plan in the text says, and reports the end of the call that the entry is about.
func (e entry) follow(ctx context.Context, text string) (p plan, err error) {
	if text != "" {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return p, err
		}
	}
	select {
	case <-time.After(time.Duration(p.Takes) * time.Millisecond):
	case <-ctx.Done():
		return p, ctx.Err()
	}
	e.Phase, e.Outcome = "end", "success"
	if e.Retry < p.Fails {
		e.Outcome = cmp.Or(p.With, "temporary")
	}
	if err := report(ctx, e); err != nil {
		return p, err
	}
	switch e.Outcome {
	case "temporary":
		return p, kopf.Temporary(errors.New("later"), time.Duration(p.Delay)*time.Millisecond)
	case "error":
		return p, errors.New("an error")
	case "permanent":
		return p, kopf.Permanent(errors.New("never"))
	}
	return p, nil
}

// stepOf returns the step of an essence, or the number of a field.
func stepOf(value any) *int64 {
	if essence, ok := value.(map[string]any); ok {
		spec, _ := essence["spec"].(map[string]any)
		value = spec["step"]
	}
	if number, ok := value.(int64); ok {
		return &number
	}
	return nil
}

// plan is what the object says about a handler. Times are in milliseconds.
type plan struct {
	Takes  int    `json:"takes"`
	Fails  int    `json:"fails"` // attempts
	With   string `json:"with"`
	Delay  int    `json:"delay"`
	Result bool   `json:"result"`
}

// entry is what the journal gets.
type entry struct {
	Process int    `json:"process"`
	Phase   string `json:"phase"`
	Handler string `json:"handler"`
	UID     string `json:"uid"`
	Name    string `json:"name"`
	Reason  string `json:"reason"`
	Retry   int    `json:"retry"`
	Version string `json:"version"`
	Step    int64  `json:"step"`
	Old     *int64 `json:"old"`
	New     *int64 `json:"new"`
	Outcome string `json:"outcome"`
	Run     string `json:"run,omitempty"` // of a schedule
}

// report returns when the journal has the entry.
func report(ctx context.Context, e entry) error {
	e.Process, _ = strconv.Atoi(os.Getenv("SWAP_PROCESS"))
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("SWAP_JOURNAL"), bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
