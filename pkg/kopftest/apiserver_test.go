package kopftest_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopftest"
)

// Clients and informers work in virtual time, and end with their contexts.
func TestAPIServerInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := kopftest.NewAPIServer(t)
		clients, err := kubernetes.NewForConfig(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		factory := informers.NewSharedInformerFactory(clients, 0)
		lister := factory.Core().V1().ConfigMaps().Lister()
		factory.Core().V1().ConfigMaps().Informer()
		stop := make(chan struct{})
		factory.Start(stop)
		factory.WaitForCacheSync(stop)

		typed, err := client.New(server.Config(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
		if err := typed.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := lister.ConfigMaps("default").Get("a"); err != nil {
			t.Error(err)
		}
		server.EndWatches()
		if err := typed.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := lister.ConfigMaps("default").Get("a"); !apierrors.IsNotFound(err) {
			t.Errorf("the watch does not continue: %v", err)
		}
		close(stop)
		factory.Shutdown()
	})
}
