package shards

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/test/testenv"
)

// Of three replicas, one is killed, one is frozen for longer than its Leases last, and one stops. The others get their shards,
// and no two work on one at the same time.
func TestReplicasTakeOverShardsFromEachOther(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	journal := filepath.Join(t.TempDir(), "journal")
	replicas := map[string]*process{}
	for _, name := range []string{"a", "b", "c"} {
		replicas[name] = spawn(t, name, namespace, journal)
	}
	signal := func(name string, signal syscall.Signal) {
		t.Helper()
		g.Expect(replicas[name].Process.Signal(signal)).To(gomega.Succeed())
	}
	// holders returns who holds the shards: the last one that has begun, unless it has ended.
	holders := func() []string {
		held := make([]string, number)
		for _, l := range read(t, journal) {
			switch {
			case l.what == "begin":
				held[l.shard] = l.by
			case l.what != "work" && held[l.shard] == l.by:
				held[l.shard] = ""
			}
		}
		return held
	}
	expect := func(alive ...string) {
		t.Helper()
		g.Eventually(holders, testenv.Patience).Should(gomega.Equal(shards.Assign(number, alive)))
	}

	expect("a", "b", "c")
	signal("a", syscall.SIGKILL)
	expect("b", "c")
	signal("b", syscall.SIGSTOP)
	expect("c")
	signal("b", syscall.SIGCONT)
	expect("b", "c")
	signal("c", syscall.SIGTERM)
	g.Expect(<-replicas["c"].done).To(gomega.Succeed())
	expect("b")
	signal("b", syscall.SIGTERM)
	g.Expect(<-replicas["b"].done).To(gomega.Succeed())

	lines := read(t, journal)
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	holder := make([]string, number)
	var lost []string
	for _, l := range lines {
		switch {
		case l.what == "begin":
			holder[l.shard] = l.by
		case l.what == "work" && holder[l.shard] != l.by:
			t.Errorf("%s works on shard %d, which %s has", l.by, l.shard, holder[l.shard])
		case strings.Contains(l.what, "lost"):
			lost = append(lost, l.by)
		}
	}
	g.Expect(lost).To(gomega.ContainElement("b"), "it was frozen")
}
