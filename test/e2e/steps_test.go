package e2e

import (
	"testing"

	"github.com/onsi/gomega"
)

// testSteps expects that the steps follow each other, and that the way back follows a failure.
func testSteps(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	g.Eventually(cluster.Current(object)).Should(beHandled())
	merge(t, object, `{"spec": {"version": "2"}}`)
	operator.says("The update is processed: 4 succeeded; 0 failed.")
	for step, times := range map[string]int{"backup": 1, "scale-down": 1, "upgrade": 1, "scale-up": 1, "restore": 0, "scale-up-again": 0} {
		g.Expect(operator.saidTimes("The step is done.", `"step": "`+step+`"`)).To(gomega.Equal(times), step)
	}
	merge(t, object, `{"spec": {"version": "3", "broken": "upgrade"}}`)
	operator.says("The update is processed: 4 succeeded; 1 failed.")
	for step, times := range map[string]int{"backup": 2, "scale-down": 2, "upgrade": 1, "scale-up": 1, "restore": 1, "scale-up-again": 1} {
		g.Expect(operator.saidTimes("The step is done.", `"step": "`+step+`"`)).To(gomega.Equal(times), step)
	}
}
