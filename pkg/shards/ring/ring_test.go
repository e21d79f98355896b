package ring

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/kopf-go/kopf/pkg/shards"
)

func TestNamesAreValidAndDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253), strings.Repeat("a", 250) + ".b"} {
		n := newNames(Config{Name: name, Identity: "host_1", Division: shards.Division{Number: 1000}})
		if n.gate != name {
			t.Errorf("the gate of %s is %s", name, n.gate)
		}
		for _, lease := range append(n.shards, n.member) {
			if faults := validation.IsDNS1123Subdomain(lease); len(faults) > 0 || seen[lease] {
				t.Errorf("%s is wrong or not unique: %v", lease, faults)
			}
			seen[lease] = true
		}
		if faults := validation.IsValidLabelValue(n.value); len(faults) > 0 || seen["label "+n.value] {
			t.Errorf("%s is wrong or not unique: %v", n.value, faults)
		}
		seen["label "+n.value] = true
	}
}

func TestDivisionsAreToldFromLeaders(t *testing.T) {
	for text, want := range map[string]bool{
		shards.Division{Number: 16}.String():                   true,
		shards.Division{Number: 1, ByNamespace: true}.String(): true,
		"web-7d9_16 shards by uid":                             false,
		"web-7d9c5b4c6f-x2x4v_6f0c0c2e":                        false,
		shards.Division{}.String():                             false,
	} {
		if _, got := shards.Parse(text); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no shards":                   func(c *Config) { c.Division = shards.Division{} },
		"no identity":                 func(c *Config) { c.Identity = "" },
		"a long deadline":             func(c *Config) { c.RenewDeadline = c.LeaseDuration },
		"a long period":               func(c *Config) { c.RetryPeriod = 2 * c.RenewDeadline },
		"fractions of a second":       func(c *Config) { c.LeaseDuration, c.RenewDeadline = 1900*time.Millisecond, 1500*time.Millisecond },
		"a duration below one second": func(c *Config) { c.LeaseDuration, c.RenewDeadline, c.RetryPeriod = 900, 500, 100 },
		"a negative number of shards": func(c *Config) { c.Division.Number = -1 },
	} {
		config := configOf(nil)
		change(&config)
		if _, err := New(config); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func configOf(hold func(context.Context, int, Validity)) Config {
	return Config{
		Client: fake.NewClientset().CoordinationV1(), Namespace: "default", Name: "example", Identity: "a", Division: shards.Division{Number: 4},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, Hold: hold,
	}
}

func newRing(t *testing.T) *Ring {
	t.Helper()
	r, err := New(configOf(nil))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// leaseOf returns a version of a Lease.
func leaseOf(name, version, holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15)},
	}
}

func TestViewKeepsTheNewestVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		s := store{r}
		check := func(what, name, holder string) {
			t.Helper()
			if got := r.view.leases[name].holder(); got != holder {
				t.Errorf("%s: %s is held by %q, want %q", what, name, got, holder)
			}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		must(s.Replace([]any{leaseOf("x", "5", "a"), leaseOf("y", "6", "a")}, "7"))
		must(s.Add(leaseOf("z", "8", "a")))
		r.observe("x", leaseOf("x", "12", "b"), time.Now()) // the answer to a write
		must(s.Update(leaseOf("x", "9", "a")))
		check("a late event", "x", "b")
		must(s.Delete(leaseOf("x", "11", "a")))
		check("a late deletion", "x", "b")
		must(s.Replace([]any{leaseOf("y", "6", "a")}, "11"))
		check("a late list", "x", "b")
		check("a list without it", "z", "")
		must(s.Replace([]any{leaseOf("y", "6", "a")}, "12"))
		check("the list of its version", "x", "b")
		must(s.Delete(leaseOf("x", "13", "b")))
		check("a deletion", "x", "")
		must(s.Replace([]any{leaseOf("y", "3", "c")}, "4"))
		check("a restored cluster", "y", "c")
	})
}

// Versions that were seen before do not count as changes, or else a Lease would never expire while watches are lost.
func TestListDoesNotRenewLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		s := store{r}
		for range 15 {
			if err := s.Replace([]any{leaseOf("x", "5", "a")}, "7"); err != nil {
				t.Error(err)
			}
			if r.view.leases["x"].isFree(time.Now()) {
				t.Error("the Lease has expired")
			}
			time.Sleep(time.Second)
		}
		if !r.view.leases["x"].isFree(time.Now()) {
			t.Error("the Lease has not expired")
		}
	})
}

// A list does not show a gate without a label, which a leader has made.
func TestListKeepsTheGate(t *testing.T) {
	r := newRing(t)
	r.observe("example", leaseOf("example", "5", "leader"), time.Now())
	if err := (store{r}).Replace(nil, "7"); err != nil {
		t.Error(err)
	}
	if holder := r.view.leases["example"].holder(); holder != "leader" {
		t.Errorf("got %q", holder)
	}
}

func TestValidityEndsBeforeTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		valid := &tenure{ring: r, lost: make(chan struct{})}
		if valid.Valid() {
			t.Error("it was never renewed")
		}
		valid = &tenure{ring: r, lost: make(chan struct{})}
		renew := func() {
			valid.renewed.set(time.Now())
			r.gateSeen.set(time.Now())
		}
		renew()
		time.Sleep(10*time.Second - 1)
		if !valid.Valid() {
			t.Error("it is not valid")
		}
		renew()
		time.Sleep(10 * time.Second)
		if valid.Valid() {
			t.Error("it is valid after RenewDeadline")
		}
		renew()
		if valid.Valid() {
			t.Error("it is valid again")
		}
		select {
		case <-r.decision:
		default:
			t.Error("the ring was not told")
		}
		valid = &tenure{ring: r, lost: make(chan struct{})}
		renew()
		time.Sleep(5 * time.Second)
		valid.renewed.set(time.Now())
		time.Sleep(5 * time.Second)
		if valid.Valid() {
			t.Error("it is valid without the gate")
		}
	})
}

// The elector releases a Lease whenever it ends.
func TestLeaseOfAHandledShardIsNotReleased(t *testing.T) {
	r := newRing(t)
	held := &tenure{ring: r, phase: holding, lost: make(chan struct{}), interval: time.Second}
	held.renewed.set(time.Now())
	r.gateSeen.set(time.Now())
	if sent, err := held.admit(leaseOf("x", "5", "")); sent || !errors.Is(err, errLeaseHeld) {
		t.Errorf("got %t, %v", sent, err)
	}
	if sent, err := held.admit(leaseOf("x", "5", "a")); sent || err != nil {
		t.Errorf("an early renewal is sent: %t, %v", sent, err)
	}
	held.interval = 0
	if sent, err := held.admit(leaseOf("x", "5", "a")); !sent || err != nil {
		t.Errorf("a renewal is sent: %t, %v", sent, err)
	}
	held.phase = ended
	if sent, err := held.admit(leaseOf("x", "5", "")); !sent || err != nil {
		t.Errorf("a release is sent: %t, %v", sent, err)
	}
	close(held.lost)
	if sent, err := held.admit(leaseOf("x", "5", "")); sent || !errors.Is(err, errLeaseLost) {
		t.Errorf("got %t, %v", sent, err)
	}
}

// An elector whose Lease was taken meanwhile must neither get it again nor release it: its tenure is over.
func TestElectorDoesNotTouchTheLeaseOfAnotherTenure(t *testing.T) {
	for _, how := range []phase{holding, ended} {
		r := newRing(t)
		lease := leaseOf("example-shard-1", "", "a")
		lease.Namespace = "default"
		lease.UID = "1"
		lease.Spec.LeaseTransitions = ptr.To[int32](5)
		if _, err := r.client.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		one := &tenure{LeaseInterface: r.client, ring: r, lost: make(chan struct{}), phase: how, uid: "1", transitions: 5}
		if _, err := one.Get(t.Context(), lease.Name, metav1.GetOptions{}); err != nil {
			t.Errorf("its own Lease: got %v", err)
		}
		one = &tenure{LeaseInterface: r.client, ring: r, lost: make(chan struct{}), phase: ended, uid: "1", transitions: 3}
		if _, err := one.Get(t.Context(), lease.Name, metav1.GetOptions{}); !errors.Is(err, errLeaseLost) {
			t.Errorf("another one: got %v", err)
		}
	}
}

// The last request of an attempt can succeed after the attempt has ended: the elector releases the Lease.
func TestAbortedAttemptHandlesNothing(t *testing.T) {
	r := newRing(t)
	stopped := false
	attempt := &tenure{ring: r, name: "example-shard-1", lost: make(chan struct{}), stop: func() { stopped = true }}
	_, err := attempt.write(t.Context(), func(context.Context) (*coordinationv1.Lease, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		attempt.abort()
		return leaseOf("example-shard-1", "5", "a"), nil
	})
	if err != nil || !stopped || attempt.phase != ended {
		t.Errorf("got %v; it was stopped: %t; phase %d", err, stopped, attempt.phase)
	}
	if sent, err := attempt.admit(leaseOf("example-shard-1", "5", "")); !sent || err != nil {
		t.Errorf("a release is sent: %t, %v", sent, err)
	}
}

// The elector changes the Lease that it has got before it writes it.
func TestViewHasCopies(t *testing.T) {
	r := newRing(t)
	one := &tenure{LeaseInterface: r.client, ring: r, name: "example-shard-1", lost: make(chan struct{}), phase: ended}
	lease := leaseOf(one.name, "", "a")
	lease.Namespace = "default"
	written, err := one.Create(t.Context(), lease, metav1.CreateOptions{})
	if err != nil || r.view.leases[one.name].lease == written {
		t.Errorf("after a write, the view has the Lease of the elector: %v", err)
	}
	clear(r.view.leases)
	read, err := one.Get(t.Context(), lease.Name, metav1.GetOptions{})
	if err != nil || r.view.leases[one.name].lease == read {
		t.Errorf("after a read, the view has the Lease of the elector: %v", err)
	}
}

func TestFormerShardsAreNoMembers(t *testing.T) {
	r := newRing(t)
	for _, name := range []string{"example", "example-shard-3", "example-shard-4", r.names.members + "b", r.names.member} {
		r.observe(name, leaseOf(name, "5", name), time.Now())
	}
	if members, _ := r.liveMembers(time.Now()); !slices.Equal(members, []string{r.names.members + "b"}) {
		t.Errorf("got %q", members)
	}
	if r.names.isPermanent("example-shard-4") || !r.names.isPermanent("example-shard-3") || !r.names.isPermanent("example") {
		t.Error("a wrong Lease is kept or removed")
	}
}

// The clocks of processes can stand still while a machine sleeps.
func TestWallClockCounts(t *testing.T) {
	var c clock
	c.set(time.Now().Add(-time.Minute).Round(0))
	if c.isWithin(15 * time.Second) {
		t.Error("a minute is within 15 seconds")
	}
	c.set(time.Now().Add(time.Hour).Round(0))
	if !c.isWithin(15 * time.Second) {
		t.Error("a clock that was set back ends it")
	}
}

func TestLongWaitsAreToldOnce(t *testing.T) {
	var n news
	now := time.Now()
	var told []string
	wait := func(after time.Duration, awaited shards.Set) {
		if line, _ := n.waiting(awaited, now.Add(after)); line != "" {
			told = append(told, strings.SplitAfter(line, ".")[0])
		}
	}
	wait(0, shards.SetOf(1, 2))
	wait(4*time.Second, shards.SetOf(1, 2))
	wait(5*time.Second, shards.SetOf())
	wait(6*time.Second, shards.SetOf(3, 4))
	wait(10*time.Second, shards.SetOf(3, 4))
	wait(11*time.Second, shards.SetOf(4))
	wait(20*time.Second, shards.SetOf(4))
	wait(21*time.Second, shards.SetOf())
	wait(22*time.Second, shards.SetOf(5))
	wait(27*time.Second, shards.SetOf(5))
	if want := []string{"This replica waits for the shard 4.", "This replica waits for the shard 5."}; !slices.Equal(told, want) {
		t.Errorf("got %q", told)
	}
	if _, next := (&news{}).waiting(shards.SetOf(1), now); !next.Equal(now.Add(patience)) {
		t.Errorf("looks again at %s", next)
	}
}

func TestNewsAreTold(t *testing.T) {
	var n news
	now := time.Now()
	var told []string
	tell := func(after time.Duration, held shards.Set, leaving bool) {
		lines, _ := n.lines(held, now.Add(after), leaving)
		told = append(told, lines...)
	}
	tell(0, shards.SetOf(), false)
	tell(time.Second, shards.SetOf(1), false)
	tell(1900*time.Millisecond, shards.SetOf(1, 2), false)
	tell(2*time.Second, shards.SetOf(1, 2, 3), false)
	tell(9*time.Second, shards.SetOf(1, 2, 3), false)
	n.lost = shards.SetOf(1, 2, 3)
	tell(10*time.Second, shards.SetOf(), false)
	tell(11*time.Second, shards.SetOf(), false)
	tell(20*time.Second, shards.SetOf(7), false)
	tell(20500*time.Millisecond, shards.SetOf(), false)
	tell(30*time.Second, shards.SetOf(7), true)
	tell(40*time.Second, shards.SetOf(7), true)
	tell(50*time.Second, shards.SetOf(7), false)
	tell(51*time.Second, shards.SetOf(7), false)
	n.lost = shards.SetOf(7)
	tell(60*time.Second, shards.SetOf(7), false)
	tell(61*time.Second, shards.SetOf(7), false)
	want := []string{
		"This replica handles the shards 1-3.",
		"This replica has lost the shards 1-3, and cancels the handlers of all objects there.",
		"This replica handles no shards.",
		"This replica handles the shard 7.",
		"This replica has lost the shard 7, and cancels the handlers of all objects there.",
		"This replica handles the shard 7.",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got %q", told)
	}
}
