package background

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/memo"
)

// notebook is the memo of one object: it records the handlers that have used it.
type notebook struct {
	mu      sync.Mutex
	authors map[string]bool
}

func (n *notebook) sign(author string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.authors[author] = true
}

func (n *notebook) signed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var authors []string
	for author := range n.authors {
		authors = append(authors, author)
	}
	return authors
}

// notebooks is one memo for several operators, like a package variable.
var notebooks = memo.New(nil, func(*notebook) *notebook { return &notebook{authors: map[string]bool{}} })

// library contains the notebooks of all handlers, each once.
type library struct {
	mu    sync.Mutex
	known []*notebook
}

// sign adds a handler to the notebook of the current object.
func (l *library) sign(h memo.Holder, author string) {
	n := notebooks.Of(h)
	n.sign(author)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, known := range l.known {
		if known == n {
			return
		}
	}
	l.known = append(l.known, n)
}

// all returns the handlers of each notebook.
func (l *library) all() [][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([][]string, 0, len(l.known))
	for _, n := range l.known {
		all = append(all, n.signed())
	}
	return all
}

// declareAuthors declares one handler of each kind.
func (b *bench) declareAuthors(l *library) {
	kopf.NewIndex(b.Registry, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		l.sign(i, "index")
		return map[string]string{}, nil
	}, kopf.ID("index"))
	b.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error { l.sign(e, "event"); return nil }, kopf.ID("event"))
	b.OnCreate(examples, func(_ context.Context, c *kopf.Change) error { l.sign(c, "create"); return nil }, kopf.ID("create"))
	b.OnDelete(examples, func(_ context.Context, c *kopf.Change) error { l.sign(c, "delete"); return nil }, kopf.ID("delete"))
	b.Timer(examples, func(_ context.Context, t *kopf.Tick) error { l.sign(t, "timer"); return nil }, kopf.ID("timer"), kopf.Interval(brief))
	b.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
		l.sign(t, "daemon")
		<-t.Stopped()
		l.sign(t, "daemon's end")
		return nil
	}, kopf.ID("daemon"))
}

func TestHandlersOfAnObjectShareItsMemo(t *testing.T) {
	t.Parallel()
	b, l := newBench(t), &library{}
	b.declareAuthors(l)
	b.start()
	living := gomega.ConsistOf("index", "event", "create", "timer", "daemon")
	whole := gomega.ConsistOf("index", "event", "create", "timer", "daemon", "daemon's end", "delete")

	obj := b.create("one", nil)
	b.Eventually(l.all).Should(gomega.HaveExactElements(living))
	b.remove(obj)
	b.expectGone(obj)
	b.Eventually(l.all).Should(gomega.HaveExactElements(whole))

	again := b.create("one", nil)
	b.Eventually(l.all).Should(gomega.HaveExactElements(whole, living), "another object has another memo")
	b.create("two", nil)
	b.Eventually(l.all).Should(gomega.HaveExactElements(whole, living, living))
	b.remove(again)
	b.expectGone(again)
	b.Eventually(l.all).Should(gomega.HaveExactElements(whole, whole, living))
}

// The test makes no requests in between: the object is deleted and recreated as fast as
// possible. Values that a timer creates after the deletion do not matter.
func TestRecreatedObjectHasANewMemo(t *testing.T) {
	t.Parallel()
	b, l, events := newBench(t), &library{}, &library{}
	b.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		l.sign(e, string(e.UID()))
		events.sign(e, string(e.UID()))
		return nil
	}, kopf.ID("event"))
	b.Timer(examples, func(_ context.Context, t *kopf.Tick) error { l.sign(t, string(t.UID())); return nil }, kopf.ID("timer"), kopf.Interval(brief))
	b.start()
	for range 20 {
		b.remove(b.create("one", nil))
	}
	last := string(b.create("one", nil).GetUID())
	b.Eventually(l.all).Should(gomega.ContainElement([]string{last}))
	b.Expect(l.all()).To(gomega.HaveEach(gomega.HaveLen(1)), "each notebook is of one object")
	var objects []string
	for _, authors := range events.all() {
		objects = append(objects, authors...)
	}
	b.Expect(slices.Compact(slices.Sorted(slices.Values(objects)))).To(gomega.HaveLen(len(objects)), "each object has one notebook")
}
