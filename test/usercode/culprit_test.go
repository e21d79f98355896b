// Package usercode lets the code of users misbehave wherever the operator calls it: handlers,
// filters, storages, lifecycles, decoders, encoders, and functions of the operator itself. It panics,
// ends its goroutine, waits for its context, or blocks. Everything else must go on.
package usercode

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
)

// The stories make much garbage and keep little, so that the collector would take a third of their time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

// misbehavior is what code does in place of its work.
type misbehavior string

const (
	panics misbehavior = "panics"
	exits  misbehavior = "ends its goroutine"
	waits  misbehavior = "waits for its context" // code without a context blocks
	blocks misbehavior = "blocks"                // until the end of the test
)

// culprit is the code that misbehaves. The zero value of how does not.
type culprit struct {
	id       string // of the story, in an annotation of all objects
	folder   string // for files
	how      misbehavior
	released chan struct{} // lets all blocked calls return

	once sync.Once

	mu     sync.Mutex
	guilty map[string]bool // the objects for which it misbehaves
	struck map[string]int  // how often it has, by objects
}

var (
	stories  atomic.Int32
	culprits sync.Map // by their ids, for decoders, which have no other way to find theirs
)

func newCulprit(how misbehavior) *culprit {
	c := &culprit{
		id: fmt.Sprint("story-", stories.Add(1)), how: how,
		released: make(chan struct{}), guilty: map[string]bool{}, struck: map[string]int{},
	}
	culprits.Store(c.id, c)
	return c
}

// misbehaveFor lets the code misbehave when it is called for an object.
func (c *culprit) misbehaveFor(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guilty[name] = true
}

// reform ends all misbehavior, except that of the calls that are blocked.
func (c *culprit) reform() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.guilty)
}

// release ends all misbehavior.
func (c *culprit) release() {
	c.reform()
	c.once.Do(func() { close(c.released) })
}

// count returns how often the code has misbehaved for an object.
func (c *culprit) count(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.struck[name]
}

// do misbehaves if the object is one for which it does. Otherwise, it returns nil.
func (c *culprit) do(ctx context.Context, name string) error {
	c.mu.Lock()
	guilty := c.guilty[name]
	if guilty {
		c.struck[name]++
	}
	c.mu.Unlock()
	if !guilty {
		return nil
	}
	switch c.how {
	case panics:
		panic(fmt.Sprintf("misbehavior for %s", name))
	case exits:
		runtime.Goexit()
	case waits:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.released:
		}
	case blocks:
		<-c.released
	}
	return nil
}

// ask is do for code without a context and an error.
func (c *culprit) ask(name string) { _ = c.do(context.Background(), name) }
