package kopf_test

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// asked prints the answers of a filter for some values.
func asked(filter kopf.Matcher, values ...any) {
	var answers []any
	for _, value := range values {
		answers = append(answers, filter.Matches(object.NewValue(value)))
	}
	fmt.Println(answers...)
}

func ExampleEqual() {
	asked(kopf.Equal(1), int64(1), 1.0, "1", nil)
	// Output: true true false false
}

func ExamplePresent() {
	asked(kopf.Present(), "", nil)
	asked(kopf.Absent(), "", nil)
	// Output:
	// true false
	// false true
}

// A function decides about the value, and can use the arguments, too.
func ExampleMatchFunc() {
	large := kopf.MatchFunc(func(value object.Value, _ kopf.Arguments) bool {
		text, _ := value.Text()
		return strings.HasSuffix(text, "Ti")
	})
	asked(large, "2Ti", "2Gi", nil)
	// Output: true false false
}

func ExampleAll() {
	letter := kopf.MatchFunc(func(value object.Value, _ kopf.Arguments) bool {
		text, _ := value.Text()
		return len(text) == 1
	})
	asked(kopf.All(letter, kopf.Not(kopf.Equal("x"))), "a", "x", "abc")
	// Output: true false false
}

func ExampleAny() {
	asked(kopf.Any(kopf.Equal("a"), kopf.Absent()), "a", nil, "b")
	// Output: true true false
}

func ExampleNone() {
	asked(kopf.None(kopf.Equal("a"), kopf.Equal("b")), "a", "b", "c", nil)
	// Output: false false true true
}

func ExampleNot() {
	asked(kopf.Not(kopf.Equal("a")), "a", "b", nil)
	// Output: false true true
}

// Predicates are combined in the same way as filters of values.
func ExampleWhen() {
	namespace := func(name string) func(kopf.Arguments) bool {
		return func(a kopf.Arguments) bool { return a.Namespace() == name }
	}
	kopf.OnCreate(volumeclaims, createClaim,
		kopf.When(kopf.None(namespace("kube-system"), namespace("default"))),
		kopf.Labels(map[string]kopf.Matcher{"tier": kopf.Any(kopf.Equal("back"), kopf.Absent())}))
}

// nowhere is the configuration of a cluster that does not exist.
func nowhere() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:1"} }

// withoutLines removes the line numbers from an error.
func withoutLines(err error) string {
	return regexp.MustCompile(`\.go:\d+`).ReplaceAllString(err.Error(), ".go")
}

// The predicate sees the object as a Go type. Other filters are cheaper, as they do not
// decode it.
func ExampleWhenObject() {
	hasNode := func(p *corev1.Pod) bool { return p.Spec.NodeName != "" }
	kopf.OnCreate(kopf.Resource("v1", "pods"), createClaim, kopf.ID("scheduled"), kopf.WhenObject(hasNode))
}
