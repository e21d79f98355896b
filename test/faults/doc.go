// Package faults breaks an operator at every one of its writes, in every known way, and checks
// the resulting object.
//
// # Experiments
//
// A scenario is the life of one object with its handlers. It is run first without a fault on a
// real API server, which determines the number of writes and the expected result. Then it is
// run again for each write k and each fault:
//
//	crash-before     the operator dies, and the write never happens
//	crash-after      the operator dies right after the write
//	lost-answer      the write is committed, but the response is lost
//	timeout          the same, with a response that asks to retry later
//	lost-blind       the next read fails, too, and another client changes the object
//	late             the write is committed after the operator has given up
//	unavailable      the write is not committed, and the operator does not know that
//	stall            the watch delivers nothing from here on, for a while
//	stall-lost       both stall and lost-answer
//	relist           the watch breaks, and its version expires
//	edit-…           another client has just changed labels, finalizers, or the spec
//	deleted          another client has just deleted the object
//	replaced         … by force, and has created another one of the same name
//	takeover-dead    another operator has done all the work in between
//	takeover-alive   … and both continue
//	takeover-midway  another operator is in the middle of the work, and both continue
//	crash-stale      the next operator uses an API server that lags behind
//	crash-standby    a replica takes over that has not seen the write
//
// The files operator_test.go and gate_test.go implement the failures of the network. A dead operator is
// one whose requests and handlers reach nothing.
//
// # Checks
//
// The calls of the handlers and the commits form one sequence (history_test.go), and each is
// checked against everything committed before it (oracle_test.go). These are failures: a call
// after a recorded success, of a recorded attempt, in a finished cycle, without the finalizer,
// or twice by one operator; a success without its result; a daemon that runs twice at a time in
// one operator, or without the finalizer; a final record or a base that is reverted; and lost
// changes of other clients. After each stage, the object must be the same as without the fault,
// except for changes by others, no data of the operator may be left over, and there may be at
// most six additional writes. A stage ends when nothing happens anymore.
//
// A failure names its experiment, prints its history, and can be replayed:
//
//	go test ./test/faults -plan retries/k=2/stall
//
// With -short, only some of the faults are tried.
//
// # Storms
//
// A storm (storm_test.go) makes random lives of several objects at the same time, with handlers of
// all kinds, random outcomes, and many faults (stormwrites_test.go), under lifecycles that change
// with each operator. The weather of a storm (stormweather_test.go) decides what else happens:
// operators overlap, or one operator never dies, Kopf takes over between two of ours or while ours
// is paused, handlers follow others, runs of a schedule are missing, the clock steps, people send requests, or make records unreadable, lists are outdated,
// records are in the status, background handlers run. It needs no run to compare with: after it,
// everything must come to rest, and what the handlers have seen must lie end to end
// (tilingtest.Ledger). Requests that change an object go one at a time, so the order of what others
// and the operator have written is known exactly.
//
//	the base is the last state, and no other data of the operator is left over
//	every handler has handled the last state; timers, event handlers, and indices have seen it
//	no change was seen twice, and none was left out
//	no call after a recorded success or the release, of a recorded attempt, too early, while
//	the object is suspended or the operator paused, or without the finalizer
//	no call after its timeout
//	no handler is called before those that it follows have ended as it wants
//	each run of a schedule is made once, in their order, and recorded when it has ended
//	no two calls at once, and one daemon for each object, which ends before the object
//	an outcome is recorded with exactly its edit: no transformation is lost or repeated
//	what others have written is the same after every write, and no replaced object has left a result
//	the finalizer goes only after all deletion handlers that match then, and is there only if needed
//	every write is bound to a version that is not outdated, has an effect, and follows a read
//	if the outcome of the one before is unknown
//	the writes are bounded, and nothing is written when objects at rest are listed again
//	the framework never panics
//
// In some storms, the operators share the objects by shards (stormshards_test.go). One operator comes while the last one works
// still, which dies or stops some time later: its objects move, in the middle of whatever happens to them. In addition:
//
//	an object is handled by one operator at a time, and has one daemon in all of them
//	what an operator has not written when it gives an object up is written before the next one begins
//
// In some storms, the objects have families (stormfamily_test.go): config maps, secrets, services with lists of ports,
// and deployments, which grow, shrink, and change with the object. Others edit, delete, relabel, and orphan children, add
// to them, and write into lists that are ours (stormmeddle_test.go); requests for children fail, are lost, or arrive late
// (stormchildren_test.go); objects that come back under their names find the children of the last one, until the garbage
// collector has deleted them. After such a storm (stormfamilyoracle_test.go):
//
//	every child is as the function of its object says, and no other is there
//	what others have added is there, and what was accepted
//	the handlers of children have seen the last state of each of them
//	no child is written at rest, nor by the next operator
//
// A seed determines the outcome of each call, the fault of each write, and the changes of others,
// but not their order in time. To repeat a storm, or to make new ones for an hour:
//
//	go test ./test/faults -run TestStorm -seed 7
//	make storm DURATION=1h
//
// The same storms also rage in virtual time, against the API server of the test kit (virtualstorm_test.go). They take
// less than a second each, and the seed determines their order, too, in almost all runs:
//
//	make virtual-storm SEED=7
//	make virtual-storm SEEDS=10000
//	make virtual-storm SEEDS=100 TESTFLAGS=-serving
//
// In the last ones, a worker of kopf serve has the handlers of changes. It dies, hangs, answers late or twice, and breaks the
// protocol (stormworkers_test.go).
//
// # Guards
//
// Every guard of the write protocol has an experiment that fails without it. The list is in
// guards_test.go, with the code. In short:
//
//	the main write is bound to a version                  life/k=1/edit-finalizers
//	the write of the status is also bound to a version    results/k=4/replaced
//	a read checks the uid                                 life/k=2/replaced
//	the memory belongs to a uid                           life/k=3/replaced
//	an update is kept until it is written                 retries/k=2/unavailable
//	a cycle that ends with a kept update has ended        resuming/k=6/unavailable
//	outcomes before a failed write in a call are kept     children/k=1/unavailable
//	a transformation is not applied to its own result     resuming-once/k=3/lost-answer
//	… nor when it is committed late                       resuming-once/k=3/late
//	a write is not retried below the protocol             resuming-once/k=3/timeout
//	the status is not written again after a conflict      patches/k=3/edit-labels
//	the base of another operator is kept                  refusal/k=1/takeover-alive
//	its records are kept                                  retries/k=2/takeover-midway
//	an edit is dropped together with its record           patches/k=2/takeover-alive
//	all writes of a pass respect another operator         children/k=1/takeover-alive
//	no pass uses a version before the last write          retries/k=2/stall
//	… and the object is read if the watch is late         retries/k=3/stall
//	no pass runs after the last finalizer was removed     events/k=6/stall
//	lists are consistent                                  life/k=2/crash-stale
//	a standby compares versions before it works           retries/k=4/crash-standby
//	the status is written before the record               results/k=2/crash-after
//	a rejection is traced to its handler                  refusal
//	the base is a state that a pass has seen              life/k=2/edit-spec
//	… which is stored on the object                       retries/k=3/edit-spec
//	the finalizer is added first                          life
//	… even before a daemon starts                         background
//	… and stays until the daemon has ended                background
//
// To remove all of them one after another:
//
//	go test ./test/faults -run Guards -without-guards
//
// Storms know nothing about the guards, and must notice most of them by chance: stormguards_test.go
// makes storms without each of them, and without those in stormguardlist_test.go. One program has
// all the guards and their absence (stormbinary_test.go). What storms cannot notice has a reason
// there. Storms that notice nothing take about two minutes for each guard:
//
//	go test ./test/faults -run StormNoticesGuards -without-guards -timeout 0 -v
package faults
