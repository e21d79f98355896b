package handlerlog

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

type m = map[string]any

type (
	failing  struct{} // panics in all methods
	endless  struct{}
	redacted struct{ Password string }
	pointed  struct{ text string }
)

func (failing) String() string    { panic("oops") }
func (failing) Error() string     { panic("oops") }
func (e endless) MarshalLog() any { return e }
func (redacted) MarshalLog() any  { return "(redacted)" }
func (r redacted) String() string { return r.Password }
func (p *pointed) String() string { return p.text }

var (
	named     = metav1.ObjectMeta{Namespace: "ns", Name: "one"}
	secret    = &corev1.Secret{ObjectMeta: named, Data: map[string][]byte{"token": []byte("s3cret")}}
	container = []corev1.Container{{Name: "s3cret"}}
	unnamed   = corev1.PodSpec{NodeName: "s3cret", Containers: container}
	served    = m{"metadata": m{"name": "one", "namespace": "ns"}, "spec": m{"a": "s3cret"}}
)

func TestSimpleValuesAreShown(t *testing.T) {
	quantity := resource.MustParse("1Gi")
	tests := map[string]struct {
		value any
		want  string
	}{
		"a word":                       {"word", "word"},
		"a type that is a word":        {corev1.PodRunning, "Running"},
		"several words":                {"two words", `"two words"`},
		"like another key":             {"a=b", `"a=b"`},
		"an empty text":                {"", `""`},
		"a number":                     {42, "42"},
		"a fraction":                   {0.5, "0.5"},
		"a boolean":                    {true, "true"},
		"nil":                          {nil, "null"},
		"an error":                     {errors.New("no network"), `"no network"`},
		"a duration":                   {90 * time.Second, "1m30s"},
		"a duration of the API":        {metav1.Duration{Duration: time.Minute}, "1m0s"},
		"a time":                       {time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "2026-01-02T03:04:05Z"},
		"a time of the API":            {metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), "2026-01-02T03:04:05Z"},
		"a quantity":                   {quantity, "1Gi"},
		"a pointer to a quantity":      {&quantity, "1Gi"},
		"a name":                       {types.NamespacedName{Namespace: "ns", Name: "one"}, "ns/one"},
		"a reference":                  {klog.KRef("ns", "one"), "ns/one"},
		"a typed object, by its name":  {secret, "ns/one"},
		"any object, by its name":      {&unstructured.Unstructured{Object: served}, "ns/one"},
		"a cluster-scoped object":      {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1"}}, "node1"},
		"a field":                      {object.NewValue("1Gi"), "1Gi"},
		"an absent field":              {object.NewValue(nil), "(absent)"},
		"a field with a structure":     {object.NewValue(served), "..."},
		"a body":                       {object.NewBody(served), "..."},
		"a part of a body":             {object.NewBody(served).Spec(), "..."},
		"a mapping":                    {served, "..."},
		"a list":                       {[]string{"s3cret"}, "..."},
		"bytes":                        {[]byte("s3cret"), "..."},
		"a structure of the API":       {&unnamed, "..."},
		"another one":                  {unnamed, "..."},
		"a list of the API":            {container, "..."},
		"a structure":                  {struct{ Token string }{"s3cret"}, "..."},
		"a value that redacts itself":  {redacted{"s3cret"}, "(redacted)"},
		"a difference":                 {diff.Compute(m{"a": 1}, m{"a": 2}, diff.Full), `"change a: 1 -> 2"`},
		"a Stringer":                   {&pointed{"text"}, "text"},
		"a nil Stringer":               {(*pointed)(nil), "null"},
		"a value that panics":          {failing{}, "..."},
		"a value that marshals itself": {endless{}, "..."},
		"a long text":                  {strings.Repeat("x", 1000), strings.Repeat("x", 256) + "..."},
		"a long text of characters":    {strings.Repeat("€", 1000), strings.Repeat("€", 85) + "..."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := eventMessage("Message.", nil, []any{"key", test.value})
			if got != "Message. key="+test.want {
				t.Errorf("got %q", got)
			}
			if strings.Contains(got, "s3cret") {
				t.Errorf("secret data is shown: %q", got)
			}
		})
	}
}

func TestEventMessages(t *testing.T) {
	tests := map[string]struct {
		err    error
		values []any
		want   string
	}{
		"a message":              {nil, nil, "Message."},
		"an error":               {errors.New("broken"), nil, "Message: broken"},
		"an error that panics":   {failing{}, nil, "Message: ..."},
		"several values":         {errors.New("broken"), []any{"a", 1, "b", "two words"}, `Message: broken a=1 b="two words"`},
		"a key without a value":  {nil, []any{"a", 1, "b"}, "Message. a=1 b=(missing)"},
		"a key that is not text": {nil, []any{1, 2, nil, 3}, "Message. 1=2 null=3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := eventMessage("Message.", test.err, test.values); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestEventMessagesAreBounded(t *testing.T) {
	var many []any
	for range 10000 {
		many = append(many, "key", strings.Repeat("x", 10000))
	}
	if got := eventMessage("Message.", nil, many); len(got) > maxValues+2*maxValue {
		t.Errorf("%d bytes", len(got))
	}
}
