// Package garbage deletes objects whose owners are gone, as the garbage collector of
// Kubernetes does.
package garbage
