package window

import (
	"testing"
	"time"
)

// server is what a test knows about an API server: how it answers to so many requests in flight.
type server func(inFlight int) (took time.Duration, refused bool)

// refusing answers in 5 ms, and refuses requests beyond its seats.
func refusing(seats int) server {
	return func(inFlight int) (time.Duration, bool) { return 5 * time.Millisecond, inFlight > seats }
}

// sharing has so many processors, which all requests share.
func sharing(processors int) server {
	return func(inFlight int) (time.Duration, bool) {
		return 5 * time.Millisecond * time.Duration(max(inFlight, processors)) / time.Duration(processors), false
	}
}

// model is a window whose requests always wait, and whose answers come at once and in order. Only the
// times are those of the server.
type model struct {
	rule    rule
	paces   map[string]*pace
	sent    int
	refused int
}

func newModel() *model { return &model{rule: newRule(200), paces: map[string]*pace{}} }

// run sends requests of a verb, as many at a time as the window permits.
func (m *model) run(requests int, of string, by server) {
	for end := m.sent + requests; m.sent < end; {
		m.round(m.rule.size, true, of, by)
	}
}

// round sends requests at the same time.
func (m *model) round(requests int, waiting bool, of string, by server) {
	type request struct {
		round    int
		inFlight int
	}
	var inFlight []request
	for n := range requests {
		inFlight = append(inFlight, request{m.rule.sent(n + 1), n + 1})
	}
	if m.paces[of] == nil {
		m.paces[of] = &pace{}
	}
	for _, r := range inFlight {
		took, refused := by(r.inFlight)
		if !refused { // as slow as all others
			took, _ = by(requests)
		}
		m.sent++
		if refused {
			m.refused++
			m.rule.failed(r.round, Refused)
			continue
		}
		m.rule.answered(r.round, m.paces[of].isLate(took, requests <= Calm), waiting)
	}
}

func TestTheWindowFindsTheSizeThatTheServerPermits(t *testing.T) {
	tests := map[string]struct {
		by          server
		least, most int // of the size
		refused     int // in 10,000 requests
	}{
		"it refuses none":                     {refusing(1000), 200, 200, 0},
		"it refuses more than 100":            {refusing(100), 50, 101, 100},
		"it refuses more than 20":             {refusing(20), 10, 21, 100},
		"it refuses more than 5":              {refusing(5), 2, 6, 200},
		"it refuses more than 3":              {refusing(3), 1, 4, 200},
		"it refuses more than one":            {refusing(1), 1, 2, 200},
		"it becomes slower with more than 2":  {sharing(2), 5, 8, 0},
		"it becomes slower with more than 16": {sharing(16), 10, 32, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			m.run(10_000, "patch", test.by)
			if m.refused > test.refused {
				t.Errorf("%d of %d requests are refused", m.refused, m.sent)
			}
			var sizes int
			const rounds = 1000
			for range rounds {
				sizes += m.rule.size
				m.run(1, "patch", test.by)
			}
			if size := sizes / rounds; size < test.least || size > test.most {
				t.Errorf("on average, the window is %d", size)
			}
		})
	}
}

func TestTheWindowOpensQuickly(t *testing.T) {
	m := newModel()
	m.run(300, "patch", refusing(1000))
	if m.rule.size < 100 {
		t.Errorf("after 300 answers, the window is %d", m.rule.size)
	}
}

// An admission webhook, or etcd on a slow disk, is no overload.
func TestAnswersThatTakeLongAlwaysDoNotCloseTheWindow(t *testing.T) {
	slow := func(int) (time.Duration, bool) { return 3 * time.Second, false }
	m := newModel()
	for range 100 {
		m.run(10, "patch", refusing(1000))
		m.run(10, "create", slow)
	}
	if m.rule.size != 200 {
		t.Errorf("the window is %d", m.rule.size)
	}
}

// The server is slower from some moment on, however few requests there are: because of others, or
// of a new webhook. The window closes, finds that this changes nothing, and opens again.
func TestTheWindowOpensAgainWhenTheServerStaysSlow(t *testing.T) {
	m := newModel()
	m.run(3000, "patch", refusing(1000))
	slow := func(int) (time.Duration, bool) { return 200 * time.Millisecond, false }
	least := m.rule.size
	for range 1000 {
		m.run(1, "patch", slow)
		least = min(least, m.rule.size)
	}
	if least != Calm {
		t.Errorf("the window has closed to %d only", least)
	}
	m.run(5000, "patch", slow)
	if m.rule.size < 50 {
		t.Errorf("the window is %d", m.rule.size)
	}
}

// Late answers close no window that is small already: a client with few requests in flight needs more processor time for each.
func TestLateAnswersDoNotCloseASmallWindow(t *testing.T) {
	for _, size := range []int{1, 3, Patient} {
		r := newRule(100)
		r.size = size
		r.known = size
		for range 10_000 {
			if why := r.answered(r.sent(r.size), true, true); why != "" {
				t.Fatalf("a window of %d has closed because of %s", size, why)
			}
		}
		if r.size > size {
			t.Errorf("a window of %d has opened to %d", size, r.size)
		}
	}
}

// A server that has become faster is not taken for a slow one, and the old times are forgotten.
func TestTheBestTimesAreThoseOfTheServerNow(t *testing.T) {
	m := newModel()
	m.round(1, false, "patch", func(int) (time.Duration, bool) { return time.Second, false }) // a cold start
	m.run(10_000, "patch", sharing(4))
	if m.rule.size > 16 {
		t.Errorf("the window is %d", m.rule.size)
	}
}

// Some slow answers are no sign: most of a round must be late.
func TestSomeLateAnswersDoNotCloseTheWindow(t *testing.T) {
	r := newRule(100)
	for n := range 10_000 {
		if why := r.answered(r.sent(r.size), n%5 < 2, true); why != "" {
			t.Fatalf("it has closed because of %s", why)
		}
	}
	if r.size != 100 {
		t.Errorf("the window is %d", r.size)
	}
}

// All requests in flight may fail for one reason. The window must not close for each of them.
func TestAWindowClosesOnceForTheRequestsOfARound(t *testing.T) {
	for _, why := range []Reason{Refused, Unavailable, TimedOut} {
		r := newRule(100)
		r.size = 64
		var rounds []int
		for n := range 64 {
			rounds = append(rounds, r.sent(n+1))
		}
		closed := 0
		for _, round := range rounds {
			if got := r.failed(round, why); got == why {
				closed++
			}
			if got := r.answered(round, true, true); got != "" {
				t.Errorf("a late answer to an old request closes the window")
			}
		}
		if closed != 1 || r.size != 32 {
			t.Errorf("%s: closed %d times, to %d", why, closed, r.size)
		}
	}
}

func TestAWindowThatIsNotUsedBecomesSmallAndOpensQuickly(t *testing.T) {
	m := newModel()
	m.run(3000, "patch", refusing(1000))
	for range 1000 {
		m.round(1, false, "patch", refusing(1000))
	}
	if m.rule.size != Patient {
		t.Errorf("the window is %d", m.rule.size)
	}
	m.run(400, "patch", refusing(1000))
	if m.rule.size < 100 {
		t.Errorf("after 400 answers, the window is %d", m.rule.size)
	}
}

func TestTheLimitCanChange(t *testing.T) {
	r := newRule(200)
	r.limit(3)
	for range 1000 {
		r.answered(r.sent(r.size), false, true)
	}
	if r.size != 3 {
		t.Errorf("the window is %d", r.size)
	}
	r.limit(100)
	for range 1000 {
		r.answered(r.sent(r.size), false, true)
	}
	if r.size != 100 {
		t.Errorf("the window is %d", r.size)
	}
}
