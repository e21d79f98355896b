// Package kills kills operators at every write of handlers of children and of rollouts, on a real
// API server.
//
// A life is what happens to some objects, stage by stage. It is lived first by an operator that
// is not killed, which determines the number of writes, and how everything looks at the end of each
// stage. Then it is lived again for each write: once, the operator dies right before the write
// reaches the API server, and once right after that, without an answer. A dead operator has no
// effects anymore: all its requests fail. Another one starts, and each stage must end in the same
// way as without the kill: the same objects with the same content, owners, labels, annotations,
// finalizers, and field managers. No object is deleted or created more often, and when everything
// is done, another restart writes nothing.
//
// In contrast to test/faults, which breaks operators in many ways at their writes to one object,
// the writes here are those to several objects that belong together.
//
// A subtest is named after its kill, and can be repeated alone:
//
//	go test ./test/kills -run 'TestChildrenSurviveAKillAtEveryWrite/after_write_7$'
package kills
