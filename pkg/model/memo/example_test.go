package memo_test

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/memo"
)

// visits are counted for every object on its own. A package variable is no global
// state: the values are those of the operator and of its objects.
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
