package memo_test

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/memo"
)

// visits counts every object separately. Although it is a package variable, it is not
// global state: the values belong to the operator and its objects.
var visits = memo.New(func() *int { return new(int) }, func(*int) *int { return new(int) })

func Example() {
	operator := memo.NewValues(nil)
	one, two := held{memo.NewValues(operator)}, held{memo.NewValues(operator)}
	for _, object := range []held{one, two, one} {
		*visits.Of(object)++
	}
	fmt.Println(*visits.Of(one), *visits.Of(two), *visits.Operator(one))
	// Output: 2 1 0
}
