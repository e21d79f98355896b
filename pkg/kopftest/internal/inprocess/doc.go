// Package inprocess connects HTTP clients with HTTP handlers without a network.
//
// A response is complete before the client sees it, unless the handler flushes it: then the
// rest is streamed. No goroutine survives its request, and all of them block in ways that
// virtual time (testing/synctest) understands.
package inprocess
