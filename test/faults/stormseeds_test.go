package faults

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"
)

// These flags choose the storms: go test ./test/faults -run TestStorm -seed 7.
var (
	oneSeed  = flag.Uint64("seed", 0, "the seed of the only storm")
	stormFor = flag.Duration("storm", 0, "make storms with new seeds for as long")
	seeds    = flag.Uint64("seeds", fleet, "the number of storms without another flag, from seed 1")
	// serving is not set by default: another test plays some of these storms.
	serving = flag.Bool("serving", false, "let workers have the handlers of changes, as with kopf serve")
	hasty   = flag.Bool("until-failure", false, "end all storms when one of them fails")
)

// fleet is the number of storms at the same time. With more, the API server is so busy that
// objects hardly get beyond their creation.
const fleet = 6

var places = make(chan struct{}, fleet)

// TestStorm plays random lives of several objects, each with many faults.
func TestStorm(t *testing.T) {
	t.Parallel()
	switch {
	case *chosen != "":
		t.Log("a plan of the sweep is chosen; no storm is made")
	case *oneSeed != 0:
		playForReal(t, *oneSeed)
	case *stormFor > 0:
		stormOn(t, time.Now().Add(*stormFor))
	default:
		stormFrom(t, 1, *seeds)
	}
}

// stormOn makes storms with new seeds until the end.
func stormOn(t *testing.T, end time.Time) {
	for first := uint64(time.Now().Unix()) * 1000; time.Now().Before(end); first += fleet {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) { stormFrom(t, first, fleet) })
	}
}

func stormFrom(t *testing.T, first, n uint64) {
	for seed := range n {
		t.Run(fmt.Sprintf("seed=%d", first+seed), func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			playForReal(t, first+seed)
		})
	}
}

// playForReal makes a storm on the real API server.
func playForReal(t *testing.T, seed uint64) {
	s := newStorm(t, cluster, &service{}, seed)
	s.failed = hasFailed
	s.listen()
	s.play()
}

// hasFailed is closed when a storm has failed, if all others must end then.
var (
	hasFailed = make(chan struct{})
	failOnce  sync.Once
)

// endOthers ends all storms after the first failure, if a flag says so.
func endOthers() {
	if *hasty {
		failOnce.Do(func() { close(hasFailed) })
	}
}
