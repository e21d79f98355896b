// Package faults breaks an operator at every one of its writes, in every way that
// we could think of, and looks at what becomes of the object.
//
// # Experiments
//
// A scenario is the life of one object, with its handlers. It is played without a
// fault first, on the real API server, which tells how many writes it takes and
// what is to come of it. Then it is played again for each write k and each fault:
//
//	crash-before     the operator dies, and the write never happens
//	crash-after      the operator dies right after it
//	lost-answer      it is committed, and the operator does not learn of it
//	timeout          nor, and is told when to come again
//	lost-blind       nor by the next read; and somebody else changes the object
//	late             it is committed when the operator has given it up
//	unavailable      it is not committed, and the operator does not know that
//	stall            the watch brings nothing from here on, for a while
//	stall-lost       both
//	relist           the watch breaks, and its version expires
//	edit-…           somebody else has just changed labels, finalizers, the spec
//	deleted          somebody else has just deleted the object
//	replaced         … by force, and made another one of the same name
//	takeover-dead    another operator has done all the work in between
//	takeover-alive   … and both go on
//	takeover-midway  another operator is in the midst of it, and both go on
//	crash-stale      the next operator finds an API server that lags behind
//	crash-standby    a replica takes over that has not seen the write
//
// What the network does to an operator is in operator_test.go and gate_test.go; a
// dead operator is one whose requests and handlers reach nobody.
//
// # What is looked at
//
// The calls of the handlers and the commits are one sequence (history_test.go),
// and each is judged by what was committed before it (oracle_test.go): no call
// after a recorded success, or of an attempt that was recorded, or in a cycle that
// has ended, or without the finalizer, or twice by one operator; no success without
// its result; no daemon twice at a time in one operator, or without the finalizer;
// no final record and no base that is taken back; nothing of others'
// that is lost. After each stage the object is the same as without the fault, but
// for what others have changed; nothing of ours is left over; and the writes are
// at most six more. A stage ends when nothing happens any more.
//
// A failure names its experiment, prints its history, and can be replayed:
//
//	go test ./test/faults -plan retries/k=2/stall
//
// With -short a part of the faults is tried.
//
// # Guards
//
// No guard of the write protocol is there without an experiment that fails when
// it is taken out. The list is in guards_test.go, with the code; this is what it
// says:
//
//	the main write is bound to a version                  life/k=1/edit-finalizers
//	the write of the status is, too                       results/k=4/replaced
//	a read looks at the uid                               life/k=2/replaced
//	the memory belongs to a uid                           life/k=3/replaced
//	an intent is kept until it is written                 retries/k=2/unavailable
//	what ends with a kept intent has ended                resuming/k=6/unavailable
//	a transformation is not repeated on its result        resuming-once/k=3/lost-answer
//	… nor when it is committed late                       resuming-once/k=3/late
//	a write is not repeated below the protocol            resuming-once/k=3/timeout
//	the status is not written again after a conflict      patches/k=3/edit-labels
//	the base of another operator stands                   refusal/k=1/takeover-alive
//	its records stand                                     retries/k=2/takeover-midway
//	with our record falls what our handler wants          patches/k=2/takeover-alive
//	all writes of a pass know of the other one            checkpoints/k=2/takeover-alive
//	no pass on a version before the last write            retries/k=2/stall
//	… and a read when the watch is late                   retries/k=3/stall
//	no pass after the last finalizer was removed          events/k=6/stall
//	lists are consistent                                  life/k=2/crash-stale
//	a standby looks at what there is before it works      retries/k=4/crash-standby
//	the status is written before the record               results/k=2/crash-after
//	a refusal is traced to its handler                    refusal
//	the base is the essence of the first pass             life/k=2/edit-spec
//	… which is kept on the object                         retries/k=3/edit-spec
//	the finalizer comes first                             life
//	… also before a daemon                                background
//	… and stays until that has ended                      background
//
// To have all of them taken out, one after another:
//
//	go test ./test/faults -run Guards -without-guards
package faults
