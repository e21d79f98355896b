// Package converge makes the children of an object what a handler says they should be: it
// applies them by server-side apply, restores what others change, and deletes what is no
// longer wanted.
//
//	a call of a handler → Converger.Converge: read what is wanted → store and watch its places
//	  → for each child, in waves: view → claim.decide → create, change, or adopt → memory.judge
//	  → delete what is not wanted anymore
//	watch events of children → store.observe → state.compare → the function of Follow
//
// A call sees and changes only the memory of its owner. What must be done with a child is decided
// by a pure function (decide.go), and done in apply.go. If the API server refuses a change,
// refusal.go and blockers.go find out what is in its way. The fields of a child are compared by
// sets of managedFields (fields.go), never by values.
//
// # What is stored where
//
// A child has a label with the hash of its owner, which is one handler of one parent, and an
// annotation with the hash of what was wanted last. Both are a part of what is applied, so they
// cannot be missing on a child that exists. A parent has an annotation with the places (kind
// and namespace) that its children were ever in. It is written before the first child is
// created there, so that no child is ever lost, even if the handler changes.
//
// # What happens to a child
//
//   - A missing child is created by an apply that the server refuses if the object exists.
//     Nothing is ever taken over by accident.
//   - If the hash of what is wanted differs from the annotation, the child is applied. The apply
//     has the uid of the child, so it never creates an object, and never changes another one.
//   - Whatever others change in the fields of the operator takes these fields away from its
//     entry in managedFields. So drift is a change of that entry: two digests tell, when the
//     event of the child arrives, and nothing is requested from the server. Values need not
//     be compared, so it does not matter how the server or a webhook writes them.
//   - After a restart there is no former digest. Then the entry must cover all that is wanted;
//     only a child for which that is not so is applied once more.
//   - If a handler decides about drift, a child that has drifted is read once more, to name the
//     fields and their managers. The decision is a part of the call, and the apply is valid only
//     for the version that was read. The fields that it accepts are left out of the apply, so
//     they are not the operator's, and are no drift anymore. The annotation has their paths, with
//     hashes of what was wanted: a field is applied again when something else is wanted, or when
//     the annotation is removed.
//
// # What never happens
//
// A child is not judged by a version that is older than the last answer to the operator
// itself. Nothing is deleted in a call in which the handler failed, a child was refused or
// waits, or a watch is incomplete. Deletions carry the uid and the version. Namespaces, claims,
// volumes, and resource definitions are deleted only on request.
//
// # Memory
//
// There is no copy of a child: only a fact of a few hundred bytes, with its identity, two
// digests, and its readiness. A test counts them. Kinds are watched only after a handler has
// used them, and only those objects that have the label.
//
// This package carries no compatibility promise.
package converge
