package handling

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// crowd counts the handlers that run concurrently.
type crowd struct {
	mu       sync.Mutex
	running  map[string]int
	highest  int
	overlaps []string
	enough   chan struct{} // closed when so many run at once
	wanted   int
}

func newCrowd(wanted int) *crowd {
	return &crowd{running: map[string]int{}, enough: make(chan struct{}), wanted: wanted}
}

func (c *crowd) enter(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[name]++
	if c.running[name] > 1 {
		c.overlaps = append(c.overlaps, name)
	}
	if len(c.running) > c.highest {
		c.highest = len(c.running)
		if c.highest == c.wanted {
			close(c.enough)
		}
	}
}

func (c *crowd) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[name]--; c.running[name] == 0 {
		delete(c.running, name)
	}
}

func TestManyObjectsAreHandledInParallel(t *testing.T) {
	t.Parallel()
	const objects, workers, calls = 500, 4, 50
	const running = calls * 80 / 100 // of one resource
	b, c := newBench(t), newCrowd(running)
	crowded := func(id string) func(context.Context, *kopf.Change) error {
		return b.noted(id, func(_ context.Context, change *kopf.Change) error {
			c.enter(change.Name())
			defer c.leave(change.Name())
			<-c.enough // wait until the maximum number of handlers runs
			return nil
		})
	}
	b.OnCreate(examples, crowded("a"), kopf.ID("a"))
	b.OnCreate(examples, crowded("b"), kopf.ID("b"))
	b.OnUpdate(examples, crowded("c"), kopf.ID("c"))
	b.start(func(o *kopf.Options) { o.Settings.Execution.Workers, o.Settings.Execution.MaxCalls = workers, calls })

	var clients sync.WaitGroup
	for client := range 20 {
		clients.Go(func() {
			for i := client; i < objects; i += 20 {
				b.setField(b.create(fmt.Sprint("object-", i), nil), "changed")
			}
		})
	}
	clients.Wait()
	b.Eventually(func() int { return len(b.calls.Of("b")) }).Should(gomega.Equal(objects))
	b.expectRest()
	b.Expect(b.calls.Of("a")).To(gomega.HaveLen(objects))
	b.Expect(b.calls.Of("b")).To(gomega.HaveLen(objects))
	b.Expect(c.highest).To(gomega.Equal(running))
	b.Expect(c.overlaps).To(gomega.BeEmpty())
}
