package ensure

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// Sub-handlers of the function of Ensure are called after the children are applied. What restores the
// children is no change of the object, so it calls none.
func TestSubhandlersAreCalledForChangesOfTheObject(t *testing.T) {
	t.Parallel()
	b, called := newBench(t), &operators.Calls{}
	b.Ensure(shops, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
		c.Subhandler("part", func(_ context.Context, c *kopf.Change) error {
			exists, err := cluster.Exists(object(configMaps, b.namespace, "theme", nil))()
			called.Note("%s %d, applied: %v", c.Reason(), c.Retry(), exists)
			if err == nil && c.Retry() == 0 {
				return kopf.Temporary(errors.New("not yet"), 50*time.Millisecond)
			}
			return err
		})
		return theme(ctx, c)
	}, kopf.ID("children"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	b.Expect(called.All()).To(gomega.Equal([]string{"create 0, applied: true", "create 1, applied: true"}), b.story)

	b.requests.Reset()
	b.patch(b.of(configMaps, "theme"), `{"data":{"theme":"light"}}`)
	b.expectChild(b.of(configMaps, "theme"), testenv.HavePath("data.theme", "dark"))
	b.expectWrites(0, 1)
	b.Expect(called.All()).To(gomega.HaveLen(2), b.story)

	b.patch(shop, `{"spec":{"x":2}}`)
	b.Eventually(called.All).Should(gomega.HaveExactElements(gomega.Not(gomega.BeEmpty()), gomega.Not(gomega.BeEmpty()), "update 0, applied: true", "update 1, applied: true"), b.story)
	b.expectHandled(shop)
}

// The option decides about errors of the function and about those of children in the same way.
func TestErrorsOfAFunctionOfChildren(t *testing.T) {
	for name, test := range map[string]struct {
		option  kopf.ChildOption
		retried bool
	}{
		"permanent": {kopf.Errors(kopf.ErrorsPermanent), false},
		"ignored":   {kopf.Errors(kopf.ErrorsIgnored), false},
		"temporary": {kopf.Errors(kopf.ErrorsTemporary), true},
	} {
		for _, inChild := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " in a child: ", inChild), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.Ensure(shops, b.counted(func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
					all, err := theme(ctx, c)
					if !inChild {
						return all, errors.Join(err, errors.New("broken"))
					}
					return append(all, object(services, "", "refused", nil)), err // without a port
				}), kopf.ID("children"), test.option, kopf.Backoff(time.Millisecond), kopf.Retries(3))
				b.start()
				b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
				want := int64(1)
				if test.retried {
					want = 3
				}
				b.Expect(b.calls.Load()).To(gomega.Equal(want), b.story)
				b.Expect(cluster.Exists(b.of(configMaps, "theme"))()).To(gomega.Equal(inChild), "the other child is applied")
			})
		}
	}
}
