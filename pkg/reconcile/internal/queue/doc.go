// Package queue holds what waits for a worker: the Queue has the keys of objects, once
// each, and the Backlog has their watch events, of which every one counts.
package queue
