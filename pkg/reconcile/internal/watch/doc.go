// Package watch watches the objects of the resources that handlers select: it finds the
// resources and namespaces, starts a stream for each of them, and stops it when they
// disappear. It keeps the objects in memory as compact snapshots, and reports events to a
// Consumer.
//
//	discover → apply → Consumer.SetUp → stream: list, watch → Consumer.Observe
//	                 → stop streams   → Consumer.Forget
//
// One goroutine starts and stops streams; others can read the current streams without
// waiting for it. A stream is a reflector of client-go with a store that observes the changes, so
// that the events of an object are delivered in order.
//
// Specification: Scopes; Resource specification.
package watch
