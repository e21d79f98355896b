package reconcile

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Filters that do not return occupy the workers. What the handlers of other objects have done is stored
// nevertheless, and the shutdown waits no longer than the grace period.
func TestFiltersThatDoNotReturnHoldBackNoOutcome(t *testing.T) {
	as, bs := selector.New("as"), selector.New("bs")
	var gate chan struct{}
	inCluster(t, func(r *registry.Registry) {
		gate = make(chan struct{}) // in the bubble
		r.Add(handler.Create(as, handlertest.Function(func(context.Context, *handler.Call) error {
			time.Sleep(10 * time.Second)
			return nil
		}), handler.ID("slow")))
		r.Add(handler.Create(bs, handlertest.Function(ignoreChange), handler.ID("filtered"), handlertest.When(func(*handler.Call) bool {
			<-gate
			return true
		})))
	}, func(t *testing.T, c *cluster) {
		for i := range 5 {
			c.create("as", fmt.Sprint("a", i))
		}
		synctest.Wait()
		for i := range 5 {
			c.create("bs", fmt.Sprint("b", i))
		}
		time.Sleep(10*time.Second + 5*time.Second)
		synctest.Wait()
		for i := range 5 {
			if !c.handled("as", fmt.Sprint("a", i)) {
				t.Errorf("the outcome of the handler of a%d is not stored", i)
			}
		}
		close(gate)
	}, func(c *Config) { c.Settings.Execution.Workers = 2 })
}
