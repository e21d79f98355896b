package peering

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An operator asks in each of its namespaces, also for a group that the cluster does not have.
func TestResourcesAreListedOnceForAllNamespaces(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{}, "zalando.org")
	tests := map[string]struct {
		failure  error
		requests int
		found    int
	}{
		"there is a resource": {nil, 2, 1},
		"there is no group":   {missing, 2, 0},
		"no response":         {errors.New("down"), 20, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				lists := newResourceLists(func(context.Context, string) (*metav1.APIResourceList, error) {
					requests++
					return &metav1.APIResourceList{APIResources: make([]metav1.APIResource, 1)}, test.failure
				})
				for range 2 {
					for range 10 {
						resources, err := lists.of(t.Context(), "zalando.org/v1")
						if len(resources) != test.found || (err != nil) != (test.requests > 2) {
							t.Errorf("got %v, %v", resources, err)
						}
					}
					time.Sleep(listValidity)
				}
				if requests != test.requests {
					t.Errorf("got %d requests", requests)
				}
			})
		})
	}
}

// A namespace that leaves, and an operator that stops, do not wait for the request of another one.
func TestAWaitForTheListOfAnotherNamespaceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := newResourceLists(unanswered)
		go func() { _, _ = lists.of(t.Context(), "zalando.org/v1") }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := lists.of(ctx, "zalando.org/v1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("it waited for %s, and got %v", time.Since(began), err)
		}
	})
}

// unanswered is a request that the API server does not answer.
func unanswered(ctx context.Context, _ string) (*metav1.APIResourceList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// All namespaces wait for the same request.
func TestAnUnansweredRequestForAListEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists, began := newResourceLists(unanswered), time.Now()
		if _, err := lists.of(t.Context(), "zalando.org/v1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != requestTimeout {
			t.Errorf("it waited for %s, and got %v", time.Since(began), err)
		}
	})
}
