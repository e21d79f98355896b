package e2e

import (
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kopf-go/kopf/test/testenv"
)

func testHooks(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	const own = "example.com/in-the-database"
	object := e.create(t)
	address := testenv.FreeAddress(t)
	operator := e.startWith(t, []string{"--liveness=" + address}, "KUBECONFIG="+strangers(t, e), "LOGIN_CONTEXT=operator")
	operator.says("the database is not there yet", `The operator logs in.`, `"context": "operator"`, "The creation is processed: 1 succeeded; 0 failed.")
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(beHandled(), testenv.HaveFinalizer(own)))
	g.Expect(fetched(t, "http://"+address+"/healthz")).To(gomega.MatchJSON(`{"rows":1,"objects":["kopf-example-1"]}`))
	operator.stop()
	g.Expect(operator.saidTimes("The database is closed.", `"rows": 1`)).To(gomega.Equal(1), "%s", operator.output())

	again := e.start(t)
	again.says("The resuming is processed: 1 succeeded; 0 failed.")
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())
	again.stop()
	g.Expect(again.saidTimes("The database is closed.", `"rows": 0`)).To(gomega.Equal(1), "%s", again.output())

	refusing := e.start(t, "DATABASE_OWNER=nobody")
	g.Eventually(refusing.session).Should(gexec.Exit(1))
	refusing.stopped = true
	refusing.says("the database needs an owner: set DATABASE_OWNER")
	g.Expect(refusing.saidTimes("The database is closed.")).To(gomega.BeZero(), "it was never opened")
}

// strangers returns a kubeconfig file whose context "operator" is not the current one. The
// cluster does not know the user of that.
func strangers(t testing.TB, e *example) (path string) {
	t.Helper()
	g := gomega.NewWithT(t)
	config, err := clientcmd.LoadFromFile(e.kubeconfig())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	known := config.Contexts[config.CurrentContext]
	stranger := known.DeepCopy()
	stranger.AuthInfo = "stranger"
	config.AuthInfos[stranger.AuthInfo] = &api.AuthInfo{Token: "unknown"}
	config.Contexts = map[string]*api.Context{"operator": known, "stranger": stranger}
	config.CurrentContext = "stranger"
	path = filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(clientcmd.WriteToFile(*config, path)).To(gomega.Succeed())
	return path
}

// fetched returns the content at an address.
func fetched(t testing.TB, address string) string {
	t.Helper()
	g := gomega.NewWithT(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer response.Body.Close() //nolint:errcheck // it is read to its end
	content, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	return string(content)
}
