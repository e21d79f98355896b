// Package children knows which objects are children of which parents: by owner references, or
// by labels of the children.
//
//	watch events → Index.Observe → Follower.Observe → a trigger of a handler of the parent
//	a pass       → Index.Follow, Index.Children
//
// # Links
//
// A child has any number of links. A Link is what a child and its parent have in common: the
// kind and the uid of an owner reference, or the value of a label. The index only keeps links
// that can be followed: those to kinds that IndexOwners names, and those of labels that
// IndexLabel names. All other objects of the watched kinds cost nothing.
//
// # Consistency
//
// The index changes only by watch events, and followers are told about each change, in
// order, while the index is locked. So what Children returns is exactly what the followers were
// told until then. The watch itself may be ahead of both.
//
// # Memory
//
// A child with one link takes about 110 bytes, besides its snapshot, and each parent with
// children about 320 bytes. A test counts them.
//
// This package carries no compatibility promise.
package children
