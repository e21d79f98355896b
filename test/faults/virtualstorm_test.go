//go:debug randseednop=0
package faults

import (
	"flag"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-go/kopf/test/testenv"
)

// Storms in virtual time use the API server of the test kit. They repeat exactly, in almost all runs:
//
//   - Requests, responses, and events are on their way for a moment, which the seed decides, so that hardly anything
//     happens at the same time.
//   - The jitter of client-go comes from the seed, too. It is global, so each storm has its own process while it
//     runs, and such a process has one thread.
var (
	virtualSeeds = flag.Uint64("virtual-seeds", defaultSeeds, "the number of storms in virtual time, from seed 1")
	share        = flag.String("share", "", "first/step: this process plays every such seed")
)

// TestVirtualStorm plays the storms of TestStorm in virtual time.
func TestVirtualStorm(t *testing.T) {
	first, step := uint64(0), uint64(0)
	switch {
	case *chosen != "":
		t.Log("a plan of the sweep is chosen; no storm is made")
	case *oneSeed != 0:
		playVirtually(t, *oneSeed)
	case *share == "":
		t.Parallel()
		shareStorms(t, *virtualSeeds, *serving)
	default:
		if _, err := fmt.Sscanf(*share, "%d/%d", &first, &step); err != nil {
			t.Fatal("-share: ", err)
		}
		for seed := first; seed <= *virtualSeeds; seed += step {
			if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { playVirtually(t, seed) }) && *hasty {
				return
			}
		}
	}
}

// servedStorms is the number of storms with workers.
const servedStorms = 10

// TestVirtualStormOfWorkers plays storms whose handlers are those of workers, as with kopf serve.
func TestVirtualStormOfWorkers(t *testing.T) {
	t.Parallel()
	if *chosen != "" || *oneSeed != 0 || *share != "" {
		t.Log("others are chosen")
		return
	}
	shareStorms(t, servedStorms, true)
}

// warning is how long before the end of all tests a process ends whose virtual time stands still: it says where.
const warning = 10 * time.Second

// shareStorms plays the storms in as many processes as there are processors.
func shareStorms(t *testing.T, seeds uint64, serving bool) {
	var processes sync.WaitGroup
	step := runtime.GOMAXPROCS(0)
	limit := time.Duration(0) // none
	if deadline, ok := t.Deadline(); ok {
		limit = time.Until(deadline) - warning
	}
	for first := range step {
		processes.Go(func() {
			process := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestVirtualStorm$", "-test.timeout", limit.String(),
				"-virtual-seeds", fmt.Sprint(seeds), "-share", fmt.Sprintf("%d/%d", first+1, step), fmt.Sprintf("-serving=%t", serving))
			process.Env = append(os.Environ(), "GOMAXPROCS=1", testenv.Server+"="+testenv.InMemory)
			if output, err := process.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
	processes.Wait()
}

func playVirtually(t *testing.T, seed uint64) {
	rand.Seed(int64(seed)) //nolint:staticcheck,gosec // see above
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(aftermath) })
		reviewers := &service{address: registrationv1.WebhookClientConfig{URL: new("https://" + reviewHost)}}
		s := newStorm(t, testenv.StartInMemory(t, testenv.Options{CRDs: definitionFiles, Webhooks: reviewers}), reviewers, seed)
		s.isVirtual = true
		s.play()
	})
}

// aftermath is how long client-go tries to post the last events of an operator.
const aftermath = 5 * time.Minute

// farthest is the longest time that a request, a response, or an event is on its way.
const farthest = 4 * time.Millisecond

// distances returns how long the requests of an operator are on their way.
func (s *storm) distances(operator string) func(*http.Request) time.Duration {
	var mu sync.Mutex
	sent := map[string]int{}
	return func(request *http.Request) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		what := request.Method + " " + strings.ReplaceAll(request.URL.Path, s.namespace, "") // its name is random
		sent[what]++
		return upTo(s.dice("distance", operator, what, sent[what]), farthest)
	}
}
