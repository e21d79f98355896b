// Package memo keeps values in memory for objects and their handlers.
//
// Declare a Memo once, usually as a package variable. It finds its value for every object
// without a cast:
//
//	var pings = memo.New(func() *int { return new(int) }, func(*int) *int { return new(int) })
//
//	func pinged(ctx context.Context, e *kopf.WatchEvent) error {
//		*pings.Of(e)++
//		return nil
//	}
//
// The operator has its own value, from which the values of the objects are copied. All
// values live as long as their object and the operator. Store data that must survive a
// restart in the status or in an annotation.
//
// Values are created on first use, so objects whose handlers use no memos cost nothing.
// Handlers of one object can run concurrently, as daemons and timers do. Make sure that
// the values they share are safe for that.
//
// Specification: In-memory containers.
package memo
