package watch

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestStatusesHaveTheLastError(t *testing.T) {
	r := NewResource(kex, nil)
	s := addStream(t, r, "ns")
	refused, down := errors.New("refused"), apierrors.NewServiceUnavailable("down")
	for i, step := range []struct {
		err              error
		isNew, recovered bool
	}{{nil, false, false}, {refused, true, false}, {refused, false, false}, {nil, false, true}, {nil, false, false}, {refused, true, false}, {errors.New("refused again"), false, false}, {down, true, false}} {
		if isNew, recovered := s.attempts.replaceError(step.err); isNew != step.isNew || recovered != step.recovered {
			t.Errorf("%d. %v: new %t, recovered %t", i+1, step.err, isNew, recovered)
		}
	}
	got := s.status()
	if got.Namespace != "ns" || got.Listed || got.Err == nil {
		t.Errorf("got %+v", got)
	}
}

func TestResourcesThatAreNotReadyAreNoErrors(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"the resource is not served yet":  {apierrors.NewNotFound(schema.GroupResource{Resource: "kex"}, ""), true},
		"the storage is initialized, 429": {apierrors.NewTooManyRequests("storage is (re)initializing", 1), true},
		"the storage is initialized, 503": {apierrors.NewServiceUnavailable("storage is (re)initializing"), true},
		"the API server is overloaded":    {apierrors.NewTooManyRequests("too many requests", 1), false},
		"the API server is unavailable":   {apierrors.NewServiceUnavailable("down"), false},
		"the resource may not be watched": {apierrors.NewForbidden(schema.GroupResource{}, "", nil), false},
		"the connection cannot be opened": {errors.New("refused"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isNotReady(test.err); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
