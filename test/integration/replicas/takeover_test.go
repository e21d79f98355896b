package replicas

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

// The active one of three replicas is killed again and again: nothing runs twice at the
// same time, and nothing is left undone.
func TestReplicaTakesOverFromAKilledOne(t *testing.T) {
	g, j, namespace := gomega.NewWithT(t), newJournal(t), cluster.Namespace(t)
	replicas := map[string]*process{}
	for _, name := range []string{"a", "b", "c"} {
		replicas[name] = j.spawn(name, namespace)
	}
	var killed []string
	for round := range 3 {
		name := fmt.Sprintf("object-%d", round)
		object := testenv.NewObject("KopfExample", namespace, name, nil)
		g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
		active := ""
		g.Eventually(func() string {
			for _, line := range j.lines() {
				if by, what, _ := strings.Cut(line, ": "); what == "end create "+name {
					active = by
				}
			}
			return active
		}).ShouldNot(gomega.BeEmpty())
		g.Expect(killed).NotTo(gomega.ContainElement(active))
		// What is not recorded yet would rightly be done once more.
		g.Eventually(cluster.Current(object)).Should(testenv.HaveAnnotation("kopf.zalando.org/last-handled-configuration", gomega.Not(gomega.BeNil())))
		g.Expect(replicas[active].Process.Kill()).To(gomega.Succeed())
		<-replicas[active].done
		killed = append(killed, active)
	}
	// A replica that was followed by another one never works again.
	g.Expect(j.workers()).To(gomega.Equal(killed))
	for round := range 3 {
		g.Expect(count(j.lines(), fmt.Sprintf("end create object-%d", round))).To(gomega.Equal(1))
	}
}

// A replica that is asked to stop finishes its work, calls the cleanup handlers, and
// releases the lease: the next replica need not wait until it expires.
func TestStoppedReplicaReleasesTheLease(t *testing.T) {
	g, j, namespace := gomega.NewWithT(t), newJournal(t), cluster.Namespace(t)
	first := j.spawn("a", namespace)
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "one", nil))).To(gomega.Succeed())
	g.Eventually(j.lines).Should(gomega.ContainElement("a: begin daemon one"))
	second := j.spawn("b", namespace)
	g.Expect(first.Process.Signal(syscall.SIGTERM)).To(gomega.Succeed())
	g.Expect(<-first.done).To(gomega.Succeed())
	g.Eventually(j.lines).Should(gomega.ContainElement("b: begin daemon one"))
	g.Expect(j.workers()).To(gomega.Equal([]string{"a", "b"}))

	lines := j.lines()
	stopped, cleaned, next := slices.Index(lines, "a: end daemon one"), slices.Index(lines, "a: cleanup"), slices.Index(lines, "b: begin daemon one")
	g.Expect([]int{stopped, cleaned, next}).To(gomega.And(gomega.HaveEach(gomega.BeNumerically(">=", 0)), gomega.Satisfy(slices.IsSorted[[]int])), strings.Join(lines, "\n"))
	g.Expect(second.Process.Signal(os.Interrupt)).To(gomega.Succeed())
	g.Expect(<-second.done).To(gomega.Succeed())
}

// Replicas take over from each other in the middle of the runs of a schedule: each run that was missed is made, and none
// twice.
func TestRunsOfAScheduleAreMadeOnceByReplicas(t *testing.T) {
	g, j, namespace := gomega.NewWithT(t), newJournal(t), cluster.Namespace(t)
	const missed = 12
	now := time.Now().UTC().Truncate(time.Minute)
	object := testenv.NewObject("KopfExample", namespace, "one", nil)
	object.SetLabels(map[string]string{"scheduled": "yes"})
	last := now.Add(-missed * time.Minute)
	const record = "kopf.zalando.org/backup.schedule"
	object.SetAnnotations(map[string]string{record: fmt.Sprintf(`{"started":%q,"success":true}`, last.Format(time.RFC3339))})
	g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	replicas := map[string]*process{}
	for _, name := range []string{"a", "b", "c", "d"} {
		replicas[name] = j.spawn(name, namespace)
	}
	for range 3 { // the leader stops in the middle of the second run that it makes, and a standby takes over
		leader := ""
		g.Eventually(func() bool {
			for name := range replicas {
				if count(j.lines(), "begin run ", name) >= 2 {
					leader = name
				}
			}
			return leader != ""
		}).Should(gomega.BeTrue())
		g.Expect(replicas[leader].Process.Signal(syscall.SIGTERM)).To(gomega.Succeed())
		g.Expect(<-replicas[leader].done).To(gomega.Succeed())
		delete(replicas, leader)
	}
	g.Eventually(cluster.Current(object)).Should(testenv.HaveAnnotation(record, gomega.ContainSubstring(now.Format("2006-01-02T15:04:05"))))
	var runs []string
	for _, line := range j.lines() {
		if _, run, isEnd := strings.Cut(line, ": end run "); isEnd {
			runs = append(runs, run)
		}
	}
	g.Expect(len(runs)).To(gomega.BeNumerically(">=", missed))
	for i, run := range runs {
		g.Expect(run).To(gomega.Equal(last.Add(time.Duration(i+1)*time.Minute).Format(time.RFC3339)), strings.Join(j.lines(), "\n"))
	}
	g.Expect(j.workers()).To(gomega.HaveLen(4))
}

// count counts the lines of all replicas, or of some, that begin with a text.
func count(lines []string, text string, by ...string) (found int) {
	for _, line := range lines {
		name, what, _ := strings.Cut(line, ": ")
		if strings.HasPrefix(what, text) && (len(by) == 0 || slices.Contains(by, name)) {
			found++
		}
	}
	return found
}
