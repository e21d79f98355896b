// Package contention detects that another writer keeps overwriting what an operator
// writes to an object, and decides how long to leave the object alone.
//
// # What contention is
//
// Two operators that want different values in one field are called for each other's
// writes, and each restores its own value, as fast as the API server permits, without
// end. One side can see that a field which it is about to write no longer has the
// value that it wrote last. No further proof is needed that another writer changed it:
// if the operator itself had changed it since, that would be the value it wrote last.
//
// A single overwrite is not contention: restoring it is what operators are for.
// Contention begins after Threshold overwrites, each within Window of the one before.
// Operators reach that in a second; a person who edits quickly, or a tool that applies
// its files every few minutes, does not. Writes of others to other fields do not count,
// nor do the operator's writes to fields that no other writer changes. Lists are
// written as a whole: an overwritten list counts only if exactly the same list is
// restored, because a writer that adopts the changes of the others does not revert them.
//
// The operator's own records on an object are fields like any others. Two operators
// that keep their records in the same annotations, and disagree about what was
// handled, are detected in the same way.
//
// Writes of a handler with its own client look like another writer's: a handler that
// writes different values to a field in both ways contends with itself.
//
// # What is done
//
// The write is made, because losing nothing matters most. After it, the object is left
// alone, each time for longer. Changes of the object in the meantime are handled then:
// late, but none is lost. Contention ends when a write was left alone for twice as long
// as the last delay. Then everything is as before.
//
// # What is kept
//
// For an object that was just written, two numbers for each written field; for all other
// objects, nothing. Both are dropped some seconds after the last write or, under
// contention, when it ends.
package contention
