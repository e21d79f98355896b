package peering

import (
	"errors"
	"fmt"
	"testing"
)

func TestNotFoundErrorSaysWhatToDo(t *testing.T) {
	tests := map[string]struct {
		err  NotFoundError
		want string
	}{
		"cluster": {
			NotFoundError{Group: "zalando.org", Kind: "ClusterKopfPeering", Name: "a"},
			`there is no ClusterKopfPeering "a": create it with: echo '{"apiVersion":"zalando.org/v1","kind":"ClusterKopfPeering","metadata":{"name":"a"}}' | kubectl create -f -`,
		},
		"namespace": {
			NotFoundError{Group: "kopf.dev", Kind: "KopfPeering", Namespace: "ns", Name: "a"},
			`there is no KopfPeering "a" in the namespace "ns": create it with: echo '{"apiVersion":"kopf.dev/v1","kind":"KopfPeering","metadata":{"namespace":"ns","name":"a"}}' | kubectl create -f -`,
		},
		"no resource": {
			NotFoundError{Kind: "KopfPeering", Namespace: "ns", Name: "a", NoResource: true},
			`the cluster does not have the resource of KopfPeering: install the definitions of peering with: kubectl apply -k https://github.com/kopf-go/kopf//config/crd; then create "a" in the namespace "ns"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.err.Error(); got != test.want {
				t.Errorf("got %s", got)
			}
			if !IsNotFound(fmt.Errorf("wrapped: %w", &test.err)) || IsNotFound(errors.New("another")) {
				t.Error("got the wrong result from IsNotFound")
			}
		})
	}
}
