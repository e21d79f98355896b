// Package queue holds the work for the workers: the Queue contains the keys of objects, each
// once, in turns of their resources, and the Backlog contains all of their watch events.
package queue
