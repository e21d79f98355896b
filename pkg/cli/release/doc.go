// Package release removes the state of an operator from its objects before an uninstall: the
// finalizer, the diff base, the progress, the requests, and the revisions. What is removed from an
// object is decided by Traces, from the object alone, so that an interrupted release can be
// repeated, and so that a dry run decides as the real one. Storages outside of the objects erase
// what they keep of each object that is released.
//
// The base must not be removed under a running operator, which would take all objects for new
// ones. So a Releaser looks for signs of one before it writes, and again before each page of
// objects. All objects are looked at before the first one is written.
//
// This package carries no compatibility promise.
package release
