package queue

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// keysIn returns the keys of objects of a resource.
func keysIn(resource string, number int) (keys []object.Key) {
	for i := range number {
		keys = append(keys, object.Key{Resource: resource, NamespacedName: types.NamespacedName{Name: fmt.Sprintf("%s-%04d", resource, i)}})
	}
	return keys
}

// takeAll takes the next objects one after another, and returns their names.
func takeAll(q *Queue, number int) (names []string) {
	for range number {
		key, _ := q.Get()
		names = append(names, key.Name)
		q.Done(key)
	}
	return names
}

func TestResourcesTakeTurns(t *testing.T) {
	adds := map[string]func(q *Queue, keys ...object.Key){
		"of changed objects": func(q *Queue, keys ...object.Key) {
			for _, key := range keys {
				q.Add(key)
				q.Add(key) // another change costs no turn
			}
		},
		"of initial objects": (*Queue).AddInitial,
	}
	for name, add := range adds {
		t.Run(name, func(t *testing.T) {
			inQueue(t, func(t *testing.T, q *Queue) {
				add(q, keysIn("as", 1000)...)
				add(q, keysIn("bs", 2)...)
				want := []string{"as-0000", "bs-0000", "as-0001", "bs-0001", "as-0002", "as-0003"}
				if got := takeAll(q, len(want)); !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
				add(q, keysIn("cs", 2)...) // neither late nor with the turns of the past
				want = []string{"as-0004", "cs-0000", "as-0005", "cs-0001", "as-0006"}
				if got := takeAll(q, len(want)); !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		})
	}
}

// A resource that always has something to do does not starve one with a long line.
func TestBusyResourceLeavesOthersTheirTurns(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		for _, key := range keysIn("as", 100) {
			q.Add(key)
		}
		busy := keysIn("bs", 5)
		for _, key := range busy {
			q.Add(key)
		}
		taken := map[string]int{}
		for range 100 {
			key, _ := q.Get()
			taken[key.Resource]++
			q.Done(key)
			if key.Resource == "bs" {
				q.Add(key)
			}
		}
		if taken["as"] < 45 || taken["bs"] < 45 {
			t.Errorf("got %v", taken)
		}
	})
}

// crowds are the ways in which thousands of objects of one resource get ready at once.
var crowds = map[string]func(q *Queue, keys ...object.Key){
	"that waited": func(q *Queue, keys ...object.Key) {
		for _, key := range keys {
			q.AddAfter(key, time.Second)
		}
	},
	"that are handled again": func(q *Queue, keys ...object.Key) {
		for _, key := range keys {
			q.Add(key)
			_, _ = q.Get()
			q.Detach(key)
			q.Done(key)
			q.Release(key, time.Second)
		}
	},
	"that were listed long ago": (*Queue).AddInitial,
}

// Changes of another resource are served between the objects of the crowd, one each.
func TestCrowdLeavesOthersTheirTurns(t *testing.T) {
	for name, add := range crowds {
		t.Run(name, func(t *testing.T) {
			inQueue(t, func(t *testing.T, q *Queue) {
				add(q, keysIn("as", 5000)...)
				time.Sleep(initialWait)
				synctest.Wait()
				for range 10 {
					takeAll(q, 20)
					q.Add(keysIn("bs", 1)[0])
					synctest.Wait()
					if names := takeAll(q, 3); !slices.Contains(names, "bs-0000") {
						t.Errorf("the other resource waits: %v", names)
					}
				}
			})
		})
	}
}

// An object that waits for something else does not lose the turn that it has.
func TestDelayedAdditionKeepsTheTurn(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		keys := keysIn("as", 3)
		for _, key := range keys {
			q.Add(key)
		}
		q.AddAfter(keys[0], time.Second)
		synctest.Wait()
		want := []string{"as-0000", "as-0001", "as-0002"}
		if got := takeAll(q, 3); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
