package virtual

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// A handler never finds less in an index of its own object than it sees in the object, however long the
// index takes, and however the pass has learned about the version: from the watch, or from the conflict
// of its own write.
func TestObjectIsIndexedBeforeItsHandlersAreCalled(t *testing.T) {
	const slow = 3 * time.Second // of the indexing function
	patches := func(ctx context.Context, c *kopf.Change, label string) error {
		one := newExample()
		return c.Client().Patch(ctx, one, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"tier":"`+label+`"}}}`)))
	}
	for name, test := range map[string]struct {
		create func(ctx context.Context, c *kopf.Change) error
		after  func(h *kopftest.Harness) // what others do after the creation
	}{
		"a handler changes its object": {
			create: func(ctx context.Context, c *kopf.Change) error { return patches(ctx, c, "a") },
			after:  func(*kopftest.Harness) {},
		},
		"an object changes during the retries of a handler": {
			create: func(_ context.Context, c *kopf.Change) error {
				if c.Retry() < 5 {
					return kopf.Temporary(fmt.Errorf("attempt %d", c.Retry()), time.Second)
				}
				return nil
			},
			after: func(h *kopftest.Harness) {
				h.Advance(2500 * time.Millisecond)
				h.Patch(newExample(), `{"metadata":{"labels":{"tier":"a"}}}`)
			},
		},
		"others change the object while its handler runs": {
			create: func(context.Context, *kopf.Change) error { time.Sleep(10 * time.Second); return nil },
			after: func(h *kopftest.Harness) {
				h.Advance(9 * time.Second)
				h.Patch(newExample(), `{"metadata":{"labels":{"tier":"a"}}}`)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			withOperator(t, func(r *kopf.Registry) {
				tiers := kopf.NewIndex(r, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
					time.Sleep(slow)
					return map[string]string{i.Labels()["tier"]: i.Name()}, nil
				}, kopf.ID("tiers"))
				look := func(c *kopf.Change) {
					tier := c.Labels()["tier"]
					calls = append(calls, fmt.Sprintf("%s %q", c.Reason(), tier))
					if !slices.Contains(tiers.Get(tier), c.Name()) {
						t.Errorf("%s: the index has %v for the tier %q", c.Reason(), tiers.Get(tier), tier)
					}
				}
				fn := func(ctx context.Context, c *kopf.Change) error {
					look(c)
					if c.Reason() == kopf.ReasonCreate {
						return test.create(ctx, c)
					}
					return nil
				}
				r.OnCreate(examples, fn, kopf.ID("fn"))
				r.OnUpdate(examples, fn, kopf.ID("fn"))
			}, func(t *testing.T, h *kopftest.Harness) {
				h.Create(newExample())
				h.Advance(2 * slow)
				test.after(h)
				h.Advance(time.Minute)
				if last := calls[len(calls)-1]; last != `update "a"` && last != `create "a"` {
					t.Errorf("got %q", calls)
				}
			})
		})
	}
}
