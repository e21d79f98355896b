// Package memo keeps values in memory beside objects, for the handlers of these.
//
// A Memo is declared once, usually as a package variable, and finds its own value
// for every object, without a cast:
//
//	var pings = memo.New(func() *int { return new(int) }, func(*int) *int { return new(int) })
//
//	func pinged(ctx context.Context, e *kopf.WatchEvent) error {
//		*pings.Of(e)++
//		return nil
//	}
//
// The operator has a value of its own, from which those of the objects are copied.
// All values live as long as their object and the operator do: what must survive
// a restart belongs to the status or to an annotation.
//
// Values are made when they are asked for: an object of which no handler asks
// costs nothing. Handlers of one object can run at the same time (daemons and
// timers do); what they share has to be safe for that.
//
// Specification: In-memory containers.
package memo
