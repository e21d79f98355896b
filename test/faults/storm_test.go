package faults

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

// lull is how long nothing happens when no work is left in a storm.
const lull = 500 * time.Millisecond

// lateness is when the operator of a steady storm starts.
const lateness = 300 * time.Millisecond

// stuck is how long nothing happens although work is left: a long time for a busy machine.
const stuck = 10 * time.Second

// storm is a number of objects, one operator after the other, and the faults between them.
type storm struct {
	t         *testing.T
	seed      uint64
	cluster   *testenv.Cluster
	service   *service
	namespace string
	subjects  []*subject
	operator  *stormOperator // the current one
	operators []*stormOperator
	standby   atomic.Pointer[stormOperator]
	thefts    int
	lives     int
	// crashed contains operators that must be replaced.
	crashed chan *stormOperator
	// challenged contains operators that get a rival, or are relieved; challenges counts the rivals.
	challenged chan *stormOperator
	challenges int
	// reliefs counts how often two operators have shared the objects.
	reliefs int
	weather
	peering  *unstructured.Unstructured
	outdated atomic.Pointer[[]byte] // a list
	// isVirtual is set in virtual time.
	isVirtual bool
	// isRestarted is set after a rest.
	isRestarted bool
	// failed is closed when another storm has failed, and this one must end; nil if it need not.
	failed <-chan struct{}
	// calm is set when nothing fails anymore, and no handler does.
	calm atomic.Bool

	mu       sync.Mutex
	began    time.Time
	changed  time.Time // when something has happened last
	lines    []string
	breaches []string
	over     bool // at the end, also if others are still acting
}

func newStorm(t *testing.T, cluster *testenv.Cluster, reviewers *service, seed uint64) *storm {
	s := &storm{
		t: t, cluster: cluster, service: reviewers, seed: seed, namespace: cluster.Namespace(t), began: time.Now(),
		crashed: make(chan *stormOperator, 100), challenged: make(chan *stormOperator, 1000),
	}
	s.forecast()
	for _, name := range []string{"one", "two", "three"} {
		s.subjects = append(s.subjects, newSubject(s, name))
	}
	t.Cleanup(s.report)
	t.Cleanup(s.endReplicas)
	if s.families {
		end := make(chan struct{})
		go s.collectGarbage(end)
		t.Cleanup(func() { close(end) })
	}
	return s
}

// dice returns random numbers for one decision. They depend only on the seed and on what is
// decided, not on the order of events, which no seed can repeat.
func (s *storm) dice(decision ...any) *rand.Rand {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, decision...)
	return rand.New(rand.NewPCG(s.seed, hash.Sum64()))
}

// play makes the objects live in the storm, and then die in it.
func (s *storm) play() {
	if !s.steady {
		s.start()
	}
	s.rage((*subject).live)
	s.settle("life", (*subject).rested)
	for _, subject := range s.subjects {
		subject.judgeRest()
	}
	s.rest()
	s.restart()
	s.rage((*subject).remove)
	s.settle("deletion", (*subject).gone)
	for _, subject := range s.subjects {
		subject.judgeEnd()
	}
}

// rage lets faults happen while others act on all objects.
func (s *storm) rage(act func(*subject)) {
	s.calm.Store(false)
	s.challenges = 0
	var others sync.WaitGroup
	for _, subject := range s.subjects {
		others.Go(func() { act(subject) })
	}
	over := make(chan struct{})
	go func() {
		others.Wait()
		for _, subject := range s.subjects {
			subject.awaitRead()
		}
		close(over)
	}()
	dice := s.dice("operators", s.lives)
	late := time.After(lateness)
	for {
		select {
		case <-late:
			if s.operator == nil {
				s.start()
			}
		case o := <-s.crashed:
			s.replace(o)
		case o := <-s.challenged:
			if s.shards > 0 {
				s.relieve(o)
			} else {
				s.challenge(o)
			}
		case <-time.After(upTo(dice, 600*time.Millisecond)):
			s.strike(dice)
		case <-s.failed:
			s.t.SkipNow()
		case <-over:
			s.calmDown()
			return
		}
	}
}

// calmDown ends the storm. The watches continue when all objects have been looked at.
func (s *storm) calmDown() {
	s.calm.Store(true)
	s.note("the storm is over")
	defer func() { s.operator.watches.release() }()
	if s.operator == nil {
		s.start()
	}
	for _, subject := range s.subjects {
		subject.mu.Lock()
		subject.noteRead(s.operator)
		subject.commitLateChild()
		subject.mu.Unlock()
		subject.reappear()
	}
}

// strike makes something happen to the operator at any moment.
func (s *storm) strike(dice *rand.Rand) {
	switch what := dice.IntN(6); {
	case s.operator == nil:
	case what == 0:
		s.operator.stall(dice, (*gate).shut)
	case what == 1 && s.operator.mayBreakWatches():
		s.operator.breaks.Add(1)
		s.operator.stall(dice, (*gate).cut)
	case what == 2 && !s.steady:
		s.operator.die()
	case what == 3 && !s.steady:
		s.operator.stop()
	case what == 4 && s.pauses:
		s.pause(dice)
	case what == 5 && s.elects:
		s.steal()
	case what >= 4 && s.shards > 0 && !s.steady:
		s.relieve(s.operator)
	}
}

// settle waits until all objects have reached a state, and nothing happens anymore.
func (s *storm) settle(stage string, reached func(*subject) error) {
	s.t.Helper()
	began := time.Now()
	isHeld := false
	for {
		select {
		case o := <-s.crashed:
			s.replace(o)
			isHeld = false
		case <-time.After(25 * time.Millisecond):
		case <-s.failed:
			s.t.SkipNow()
		}
		if !isHeld && time.Since(began) < stuck {
			if isHeld = s.holdsAll(); isHeld {
				s.note("%s has all objects", s.operator.name)
			}
			continue
		}
		if s.quiet() < lull {
			if time.Since(began) > 3*patience {
				s.t.Fatalf("seed %d: %s: it never becomes quiet", s.seed, stage)
			}
			continue
		}
		failed := slices.IndexFunc(s.subjects, func(o *subject) bool { return reached(o) != nil })
		if failed < 0 {
			return
		}
		if s.quiet() > stuck {
			at := s.subjects[failed]
			s.t.Fatalf("seed %d: %s: %s: %v", s.seed, stage, at.name, reached(at))
		}
	}
}

// replace starts another operator after one has died.
func (s *storm) replace(o *stormOperator) {
	go o.end()
	if o != s.operator {
		return
	}
	for _, subject := range s.subjects {
		if s.steps && !s.statusRecords {
			subject.stepClock(s.dice("clock", s.lives, subject.name))
		}
		if s.kopf && !s.calm.Load() {
			dice := s.dice("Kopf", s.lives, subject.name)
			subject.takeOver(dice)
			if dice.IntN(2) == 0 { // before the next operator has seen what Kopf has left
				subject.edit(dice)
			}
		}
	}
	s.start()
}

func (s *storm) quiet() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.changed)
}

func (s *storm) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = time.Now()
	since := s.changed.Sub(s.began).Round(time.Millisecond)
	s.lines = append(s.lines, fmt.Sprintf("%8s  %s", since, fmt.Sprintf(format, args...)))
}

func (s *storm) breach(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.note("BREACH: %s", text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaches = append(s.breaches, text)
	endOthers()
}

// report prints what was wrong, and everything that has happened.
func (s *storm) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, breach := range s.breaches {
		s.t.Errorf("seed %d: %s", s.seed, breach)
	}
	if s.t.Failed() || os.Getenv("KOPF_FAULT_HISTORY") != "" {
		s.t.Logf("replay: %s\n%s", s.replay(), strings.Join(s.lines, "\n"))
	}
}

// replay returns the command that repeats the storm.
func (s *storm) replay() string {
	flags := ""
	if *serving {
		flags += " -serving"
	}
	if s.isVirtual {
		return fmt.Sprintf("make virtual-storm SEED=%d TESTFLAGS='%s'", s.seed, flags)
	}
	return fmt.Sprintf("go test ./test/faults -run TestStorm -seed %d%s", s.seed, flags)
}

// try fails the test if others cannot do what they want.
func (s *storm) try(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if client.IgnoreNotFound(err) != nil && !s.over {
		s.t.Errorf("seed %d: %v", s.seed, err)
	}
}

// upTo returns a random duration.
func upTo(dice *rand.Rand, longest time.Duration) time.Duration {
	return time.Duration(dice.Int64N(int64(longest)))
}

// oneOf returns a random item.
func oneOf[T any](dice *rand.Rand, items ...T) T { return items[dice.IntN(len(items))] }
