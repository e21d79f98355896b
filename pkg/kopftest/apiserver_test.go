package kopftest_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
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

// Without the option, the server ignores the parameter, as the one of Kubernetes does by default: the answer says which of
// both it was.
func TestShardedLists(t *testing.T) {
	const half = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	for name, options := range map[string][]kopftest.APIServerOption{"default": nil, "sharded": {kopftest.ShardedLists()}} {
		t.Run(name, func(t *testing.T) {
			clients, err := kubernetes.NewForConfig(kopftest.NewAPIServer(t, options...).Config())
			if err != nil {
				t.Fatal(err)
			}
			list, err := clients.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{ShardSelector: half})
			if err != nil {
				t.Fatal(err)
			}
			isSharded := options != nil
			if info := list.GetShardInfo(); isSharded != (info != nil && info.Selector == half) {
				t.Errorf("got the shard %+v", info)
			}
			all, err := clients.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for i := range all.Items {
				if uid := string(all.Items[i].UID); !isSharded || sharding.HashField(uid) < "8" {
					want = append(want, uid)
				}
			}
			var got []string
			for i := range list.Items {
				got = append(got, string(list.Items[i].UID))
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// What the server does not have is no puzzle.
func TestTheScaleSubresourceIsMissed(t *testing.T) {
	c, err := client.New(kopftest.NewAPIServer(t).Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	definition := kopftest.Object(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: sets, kind: Set}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)
	set := kopftest.Object(`{apiVersion: example.com/v1, kind: Set, metadata: {name: one, namespace: default}}`)
	for _, object := range []client.Object{definition, set} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	scale := kopftest.Object(`{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: one, namespace: default}}`)
	if err := c.SubResource("scale").Get(t.Context(), set, scale); err == nil || !strings.Contains(err.Error(), "use kopftest.Cluster") {
		t.Errorf("got %v", err)
	}
}
