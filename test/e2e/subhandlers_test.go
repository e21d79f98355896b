package e2e

import (
	"testing"

	"github.com/onsi/gomega"
)

func testSubhandlers(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	operator.says("The creation is processed")
	g.Eventually(cluster.Current(object)).Should(beHandled())
	current, err := cluster.Current(object)()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(current.Object["status"]).To(gomega.Equal(map[string]any{
		"createFn":             map[string]any{"items": int64(2)},
		"createFn/item1/left":  "made",
		"createFn/item1/right": "made",
		"createFn/item2/left":  "made",
	}))
	for _, part := range []string{"item1/left", "item1/right", "item2/left"} {
		g.Expect(operator.saidTimes("The part is created.", `"handler": "createFn/`+part+`"`)).To(gomega.Equal(1), part)
	}
	g.Expect(operator.saidTimes("this part takes a while", "createFn/item1/right")).To(gomega.Equal(1))
}
