// Package watch watches the objects of the resources that handlers select: it finds
// the resources and namespaces, starts a stream for each of them, and stops it when
// they go. What the streams show is kept in memory as compact snapshots, and told to
// a Consumer.
//
//	discover → apply → Consumer.SetUp → stream: list, watch → Consumer.Observe
//	                 → stop streams   → Consumer.Forget
//
// One goroutine starts and stops streams; the others read what is there now and never
// wait for it. A stream is a client-go informer with one listener, so that the events
// of an object are told in order.
//
// Specification: Scopes; Resource specification.
package watch
