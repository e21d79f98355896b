package memo_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/memo"
)

// held implements Holder, like the arguments of handlers.
type held struct{ values *memo.Values }

func (h held) Memo() *memo.Values { return h.values }

// operatorWith returns the arguments of handlers for several objects of one operator, and
// of a handler without an object.
func operatorWith(objects int) (operator held, handlers []held) {
	operator = held{memo.NewValues(nil)}
	for range objects {
		handlers = append(handlers, held{memo.NewValues(operator.values)})
	}
	return operator, handlers
}

func counter() *memo.Memo[*int] {
	return memo.New(func() *int { return new(int) }, func(operator *int) *int { own := *operator; return &own })
}

func TestObjectKeepsItsValue(t *testing.T) {
	_, objects := operatorWith(2)
	pings := counter()
	*pings.Of(objects[0])++
	*pings.Of(held{objects[0].values})++ // another handler of the same object
	if *pings.Of(objects[0]) != 2 || *pings.Of(objects[1]) != 0 {
		t.Errorf("got %d and %d", *pings.Of(objects[0]), *pings.Of(objects[1]))
	}
}

func TestValueOfObjectIsCopiedFromOperator(t *testing.T) {
	operator, objects := operatorWith(2)
	pings := counter()
	*pings.Operator(operator) = 7
	if *pings.Of(objects[0]) != 7 {
		t.Errorf("got %d", *pings.Of(objects[0]))
	}
	// Later changes of the operator's value do not affect existing copies.
	*pings.Operator(objects[0]) = 9
	*pings.Of(objects[0])++
	if *pings.Of(objects[0]) != 8 || *pings.Of(objects[1]) != 9 || *pings.Of(operator) != 9 {
		t.Errorf("got %d, %d, %d", *pings.Of(objects[0]), *pings.Of(objects[1]), *pings.Of(operator))
	}
}

func TestShallowCopiesShareTheirParts(t *testing.T) {
	type shared struct {
		queue chan string
		seen  bool
	}
	memos := memo.New(func() shared { return shared{queue: make(chan string, 2)} }, nil)
	_, objects := operatorWith(2)
	for _, object := range objects {
		if value := memos.Of(object); !value.seen {
			value.queue <- "x"
		}
	}
	if queued := len(memos.Operator(objects[0]).queue); queued != 2 {
		t.Errorf("got %d in the queue", queued)
	}
}

func TestObjectsShareValueWithoutClone(t *testing.T) {
	operator, objects := operatorWith(2)
	same := memo.New(func() *int { return new(int) }, nil)
	if first := same.Of(objects[0]); first != same.Of(objects[1]) || first != same.Operator(operator) {
		t.Error("there are several values")
	}
}

func TestOperatorsDoNotShareValues(t *testing.T) {
	_, ours := operatorWith(1)
	_, theirs := operatorWith(1)
	pings := counter()
	*pings.Operator(ours[0]) = 1
	*pings.Of(ours[0]) = 2
	if *pings.Operator(theirs[0]) != 0 || *pings.Of(theirs[0]) != 0 {
		t.Error("another operator has the value")
	}
}

// An object that is created again gets new values.
func TestRecreatedObjectHasNewValues(t *testing.T) {
	operator, objects := operatorWith(1)
	pings := counter()
	*pings.Of(objects[0]) = 5
	if again := (held{memo.NewValues(operator.values)}); *pings.Of(again) != 0 {
		t.Errorf("got %d", *pings.Of(again))
	}
}

func TestMemosOfOneTypeAreIndependent(t *testing.T) {
	_, objects := operatorWith(1)
	pings, pongs := counter(), counter()
	*pings.Of(objects[0])++
	if *pongs.Of(objects[0]) != 0 {
		t.Error("they are the same")
	}
}

func TestMemoWithoutFunctionsHasZeroValue(t *testing.T) {
	operator, objects := operatorWith(1)
	zero := memo.New[int](nil, nil)
	if zero.Of(objects[0]) != 0 || zero.Operator(operator) != 0 || zero.Of(held{}) != 0 {
		t.Error("got a value other than the zero value")
	}
}

// Each value is created once, even if it is nil.
func TestValuesAreCreatedOnce(t *testing.T) {
	made, copied := 0, 0
	nothing := memo.New(func() error { made++; return nil }, func(error) error { copied++; return nil })
	operator, objects := operatorWith(3)
	if made+copied != 0 {
		t.Errorf("made %d, copied %d before the first use", made, copied)
	}
	for range 5 {
		_ = nothing.Of(objects[0])
		_ = nothing.Of(objects[1])
		_ = nothing.Operator(operator)
	}
	if made != 1 || copied != 2 {
		t.Errorf("made %d, copied %d", made, copied)
	}
}

func TestContextsEndWithTheirValues(t *testing.T) {
	operator, objects := operatorWith(2)
	objects[0].values.Context()
	for range 2 {
		objects[0].values.End()
		objects[1].values.End() // its context is asked for later
	}
	for _, object := range objects {
		if object.values.Context().Err() == nil {
			t.Error("a context is not done")
		}
	}
	var none *memo.Values
	if operator.values.Context().Err() != nil || none.Context().Err() != nil {
		t.Error("the operator does not end")
	}
}

// Arguments created in tests cannot keep values.
func TestArgumentsOfTestsKeepNothing(t *testing.T) {
	pings := counter()
	*pings.Of(held{})++
	*pings.Operator(held{})++
	if *pings.Of(held{}) != 0 || *pings.Operator(held{}) != 0 {
		t.Error("something was kept")
	}
}

func TestValuesCanUseOtherMemos(t *testing.T) {
	operator, objects := operatorWith(1)
	pings := counter()
	names := memo.New(func() []string { return []string{"operator"} }, func(names []string) []string {
		*pings.Of(objects[0])++
		return append(slices.Clone(names), "object")
	})
	if got := names.Of(objects[0]); !slices.Equal(got, []string{"operator", "object"}) || *pings.Of(objects[0]) != 1 {
		t.Errorf("got %v, %d", got, *pings.Of(objects[0]))
	}
	if got := names.Of(operator); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestPanicLeavesNothingBehind(t *testing.T) {
	broken := true
	values := memo.New(func() int {
		if broken {
			panic("not yet")
		}
		return 3
	}, nil)
	operator, objects := operatorWith(1)
	func() {
		defer func() { _ = recover() }()
		values.Of(objects[0])
	}()
	broken = false
	if values.Of(objects[0]) != 3 || values.Operator(operator) != 3 {
		t.Errorf("got %d", values.Of(objects[0]))
	}
}

func TestMemoIsSafeForConcurrentUse(t *testing.T) {
	var made, copied atomic.Int32
	visits := memo.New(func() *atomic.Int32 { made.Add(1); return new(atomic.Int32) },
		func(*atomic.Int32) *atomic.Int32 { copied.Add(1); return new(atomic.Int32) })
	_, objects := operatorWith(10)
	var all sync.WaitGroup
	for range 100 {
		for _, object := range objects {
			all.Go(func() { visits.Of(object).Add(1) })
		}
	}
	all.Wait()
	for _, object := range objects {
		if got := visits.Of(object).Load(); got != 100 {
			t.Errorf("got %d", got)
		}
	}
	if made.Load() != 1 || copied.Load() != 10 {
		t.Errorf("made %d, copied %d", made.Load(), copied.Load())
	}
}

// Creating a slow value does not block other memos.
func TestSlowValueDoesNotBlockOtherMemos(t *testing.T) {
	_, objects := operatorWith(1)
	begun, proceed := make(chan struct{}), make(chan struct{})
	slow := memo.New(func() string { close(begun); <-proceed; return "slow" }, nil)
	var audience sync.WaitGroup
	audience.Go(func() {
		if got := slow.Of(objects[0]); got != "slow" {
			t.Errorf("got %q", got)
		}
	})
	<-begun
	if pings := counter(); *pings.Of(objects[0]) != 0 || *pings.Operator(objects[0]) != 0 {
		t.Error("another memo has a value")
	}
	close(proceed)
	audience.Wait()
}
