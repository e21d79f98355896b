// Package contention notices that somebody else undoes what an operator writes to an
// object, again and again, and tells how long to leave that object alone.
//
// # What a dispute is
//
// Two operators that want different values in one field are called for each
// other's writes, and each restores what it wants: as fast as the API server can,
// without end. What can be seen of it from one side is that a field which the
// operator is about to write does not have the value any more that it has written
// there last. That it was somebody else, needs no further proof: had the operator
// itself changed it since, that would be what it has written last.
//
// Once is no dispute: it is what operators are for. A dispute begins when it
// happens Patience times, each time within Window after the time before. Operators
// do that in a second; a person who edits quickly, or a tool that applies its
// files every few minutes, does not. What others write elsewhere does not count,
// however often, and neither does what the operator writes where nobody else
// does. Lists are written as a whole: there it counts only if the very same list
// is restored, for whoever takes over the changes of the others does not undo them.
//
// The operator's own records on an object are fields like others. Two operators
// that keep them in the same annotations, and do not agree about what was handled,
// are noticed in the same way.
//
// What a handler writes with a client of its own looks like somebody else's: a
// handler that writes a field in both ways, to different values, disputes with itself.
//
// # What is done
//
// The write is made, for to lose nothing is more important. After it, the object is
// left alone, each time for longer. What happens to it meanwhile is handled then:
// nothing is lost, it comes late. The dispute is over when a write was left alone for
// twice as long as the last pause, and then everything is as before.
//
// # What is kept
//
// Of an object that was just written, two numbers for each field that was; of all
// others, nothing. Both are forgotten some seconds after the last write, or, of a
// dispute, when it is over.
package contention
